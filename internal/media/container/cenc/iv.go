package cenc

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Under the scheme cenc the IVs of a fragment follow from its own bytes, as in the synthetic IVs of RFC 5297: fragments
// with different bytes have different IVs, whatever their names and whichever node made them. So no mistake in names or
// numbers, here or elsewhere, can have one keystream encrypt two plaintexts.

const (
	// ivSize is Per_Sample_IV_Size under the scheme cenc: the whole counter block of the first 16 bytes, section 9.3.
	// 8 bytes would leave room for 64 bits of a digest, of which two are the same within some years of a live stream.
	ivSize = 16
	// nonceSize is how much of it is the same for all samples of a fragment. The other 32 bits count its blocks: of two
	// fragments no counters are the same, and none wraps, which decrypters do differently.
	nonceSize = 12
)

// ivKey is what a content key makes IVs with; it encrypts nothing.
func ivKey(k Key) ([]byte, error) {
	return hkdf.Key(sha256.New, k.Value[:], nil, "millrace: IVs of the scheme cenc", sha256.Size)
}

// ivs are the IVs of a fragment's samples. They depend on all that is encrypted, and on which bytes of it are: a reader
// of slice headers that is mended later has more or less of the same sample encrypted.
func (t *Track) ivs(moof, mdat []byte, f *fragment) [][ivSize]byte {
	be := binary.BigEndian
	divided := make([]byte, 0, 4*len(f.counts)+8*len(f.subs))
	for _, n := range f.counts {
		divided = be.AppendUint32(divided, uint32(n))
	}
	for _, s := range f.subs {
		divided = be.AppendUint32(be.AppendUint32(divided, uint32(s.clear)), uint32(s.protected))
	}
	digest := hmac.New(sha256.New, t.ivKey)
	for _, b := range [][]byte{moof, mdat, divided} { // boxes begin with their sizes
		_, _ = digest.Write(b) // it never fails
	}
	nonce := digest.Sum(nil)[:nonceSize]
	out, block := make([][ivSize]byte, len(f.samples)), uint32(0)
	for i, s := range f.samples {
		copy(out[i][:], nonce)
		be.PutUint32(out[i][nonceSize:], block)
		block += (s.Size + blockSize - 1) / blockSize
	}
	return out
}
