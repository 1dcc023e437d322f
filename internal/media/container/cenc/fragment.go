package cenc

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"millrace/internal/media/container/bmff"
)

// Place says where movie fragments are, so that no two samples have the same IV under the scheme cenc.
type Place struct {
	Track    uint64 // by Number
	MSN      int64  // media sequence number of the segment; less than 2^28
	Fragment int    // the first one's place in its segment; less than 4096 with those behind it
}

// Number is 56 bits of a hash of all that tells two tracks with the same key apart: the recording, the rendition, and who writes it.
func Number(media, rendition string, generation int64) uint64 {
	sum := sha256.Sum256([]byte(media + "/" + rendition + "/" + strconv.FormatInt(generation, 10)))
	return binary.BigEndian.Uint64(sum[:]) >> 8
}

// ErrPlace means that there is no IV for a place: it is too far.
var ErrPlace = errors.New("too many segments, fragments or samples for the IVs of the scheme cenc")

const (
	blockSize = 16
	// ivSize is Per_Sample_IV_Size under the scheme cenc. The last 20 bits of an IV are 0: they count blocks.
	ivSize = 16

	maxMSN, maxFragment, maxSample = 1 << 28, 1 << 12, 1 << 12
	// largestSample is how many bytes the counter of an IV is enough for.
	largestSample = 1 << 20 * blockSize
)

// iv is the initial counter of a sample: track 56 bits, segment 28, fragment 12, sample 12, and 20 that count blocks.
func (p Place) iv(sample int) (iv [ivSize]byte, err error) {
	if p.Track >= 1<<56 || p.MSN < 0 || p.MSN >= maxMSN || p.Fragment < 0 || p.Fragment >= maxFragment || sample >= maxSample {
		return iv, ErrPlace
	}
	be := binary.BigEndian
	be.PutUint64(iv[:], p.Track<<8|uint64(p.MSN)>>20)
	be.PutUint64(iv[8:], uint64(p.MSN)<<44|uint64(p.Fragment)<<32|uint64(sample)<<20)
	return iv, nil
}

// maxSamples bounds how many samples a movie fragment may claim.
const maxSamples = 1 << 16

// Encrypt encrypts movie fragments, whole ones: a segment or a part. Boxes of other kinds stay as they are. bmff.ErrMalformed: they are none, or
// not of one track with its data behind it; ErrPlace. data stays as it is.
func (t *Track) Encrypt(data []byte, p Place) ([]byte, error) {
	var pieces [][]byte
	var all []fragment
	size := 0 // of all pieces
	add := func(b []byte) { pieces, size = append(pieces, b), size+len(b) }
	var moof []byte
	for at := 0; at < len(data); {
		box, _, err := bmff.Next(data[at:])
		if err != nil {
			return nil, err
		}
		n := len(box.Raw)
		switch {
		case n == 0:
			return nil, bmff.Malformed("%d bytes behind the last fragment", len(data)-at)
		case box.Type.Is("moof") && moof == nil:
			moof = box.Raw
		case box.Type.Is("mdat") && moof != nil:
			f, head, failed := t.fragment(moof, box.Raw, p)
			if failed != nil {
				return nil, failed
			}
			add(head)
			f.mdat = size
			all = append(all, f)
			add(box.Raw)
			p.Fragment++
			moof = nil
		case moof != nil, box.Type.Is("mdat"):
			return nil, bmff.Malformed("a movie fragment without its data, or data without one")
		default:
			add(box.Raw)
		}
		at += n
	}
	if moof != nil {
		return nil, bmff.Malformed("a movie fragment without its data")
	}
	out := bytes.Join(pieces, nil) // into memory that is not cleared before, which would cost as much as to encrypt
	for _, f := range all {
		if err := t.samples(out[f.mdat:], f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fragment is a movie fragment that is to be encrypted.
type fragment struct {
	place   Place
	mdat    int // where its mdat box is in the output
	moof    int // size of its moof box in the input: offsets of samples count from its beginning
	samples []bmff.RunSample
	counts  []int // of subsamples, for each sample
	subs    []subsample
}

// fragment reads one; head is its moof box with what decrypters are told.
func (t *Track) fragment(moof, mdat []byte, p Place) (f fragment, head []byte, err error) {
	m := bmff.Moof{Body: moof[8:], MaxSamples: min(maxSamples, len(moof)+len(mdat)), Defaults: t.defaults}
	runs, err := m.Runs()
	if err != nil {
		return f, nil, err
	}
	if len(runs) != 1 || binary.BigEndian.Uint32(moof) < 8 {
		return f, nil, bmff.Malformed("a movie fragment of %d tracks", len(runs))
	}
	f = fragment{place: p, moof: len(moof), samples: runs[0].Samples, counts: make([]int, len(runs[0].Samples))}
	for i, s := range f.samples {
		from, to := s.Offset-int64(len(moof)), s.Offset-int64(len(moof))+int64(s.Size)
		if from < 8 || to > int64(len(mdat)) {
			return f, nil, bmff.Malformed("sample %d lies outside of its fragment", i)
		}
		if t.units == nil {
			continue
		}
		had := len(f.subs)
		f.subs, err = t.units.divide(f.subs, mdat[from:to], t.scheme == CTR)
		if err == nil {
			f.subs, err = merged(f.subs, had, maxSubsamples(t.scheme))
		}
		if err != nil {
			return f, nil, fmt.Errorf("%w: sample %d: %w", bmff.ErrMalformed, i, err)
		}
		f.counts[i] = len(f.subs) - had
	}
	info, err := t.info(f.counts, f.subs, p)
	if err != nil {
		return f, nil, err
	}
	head, err = withInfo(make([]byte, 0, len(moof)+info.growth()), moof, info)
	return f, head, err
}

// samples encrypts the samples of an mdat box in their place.
func (t *Track) samples(mdat []byte, f fragment) error {
	subs := f.subs
	for i, s := range f.samples {
		at := int(s.Offset) - f.moof
		if err := t.sample(mdat[at:at+int(s.Size)], subs[:f.counts[i]], f.place, i); err != nil {
			return err
		}
		subs = subs[f.counts[i]:]
	}
	return nil
}

// sample encrypts a sample in its place.
func (t *Track) sample(b []byte, subs []subsample, p Place, i int) error {
	if t.units == nil {
		subs = []subsample{{protected: len(b)}}
	}
	if t.scheme == CBCS {
		for _, s := range subs {
			t.chain(b[s.clear : s.clear+s.protected])
			b = b[s.clear+s.protected:]
		}
		return nil
	}
	iv, err := p.iv(i)
	if err != nil || len(b) > largestSample {
		return ErrPlace
	}
	stream := cipher.NewCTR(t.block, iv[:])
	for _, s := range subs {
		protected := b[s.clear : s.clear+s.protected]
		stream.XORKeyStream(protected, protected)
		b = b[s.clear+s.protected:]
	}
	return nil
}

// chain encrypts whole blocks by CBC, of video by the pattern; what is left over stays clear. Each stretch begins with the constant IV.
func (t *Track) chain(b []byte) {
	if !t.video {
		b = b[:len(b)&^(blockSize-1)]
		cipher.NewCBCEncrypter(t.block, t.key.IV[:]).CryptBlocks(b, b)
		return
	}
	le := binary.LittleEndian
	x, y := le.Uint64(t.key.IV[:]), le.Uint64(t.key.IV[8:])
	for ; len(b) >= blockSize; b = b[min(len(b), blockSize*(cryptBlocks+skipBlocks)):] {
		c := b[:blockSize:blockSize]
		le.PutUint64(c, x^le.Uint64(c))
		le.PutUint64(c[8:], y^le.Uint64(c[8:]))
		t.block.Encrypt(c, c)
		x, y = le.Uint64(c), le.Uint64(c[8:])
	}
}
