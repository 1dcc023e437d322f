package rtmp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
)

// Message types, RTMP 1.0 sections 5.4 and 7.1.
const (
	typeSetChunkSize  = 1
	typeAbort         = 2
	typeAck           = 3
	typeUserControl   = 4
	typeWindowAckSize = 5
	typePeerBandwidth = 6
	typeAudio         = 8
	typeVideo         = 9
	typeDataAMF3      = 15
	typeCommandAMF3   = 17
	typeDataAMF0      = 18
	typeCommandAMF0   = 20
	typeAggregate     = 22
)

const (
	maxChunkStreams = 32      // encoders use three to six
	maxControl      = 1 << 10 // bytes of a protocol control message
	maxCommand      = 1 << 16 // bytes of a command or a data message
	extendedMark    = 0xffffff
)

var errChunk = errors.New("malformed RTMP chunk")

// packet is one whole RTMP message. body belongs to whoever takes it.
type packet struct {
	kind      uint8
	timestamp uint32 // milliseconds modulo 2^32
	body      []byte
}

// chunkReader joins chunks to messages, RTMP 1.0 section 5.3. What it does not want it reads past without keeping it, and
// it never holds more than budget bytes of unfinished messages, whatever the peer announces.
type chunkReader struct {
	br        *bufio.Reader
	chunkSize uint32
	low       [64]*chunkStream // by chunk stream id
	high      map[uint32]*chunkStream
	streams   int
	media     int // largest audio, video or aggregate message in bytes; 0 skips them
	budget    int // bytes
	held      int // bytes of unfinished messages
	header    [11]byte
}

type chunkStream struct {
	timestamp, delta uint32
	extended         uint32
	hasExtended      bool
	known            bool // a header with a length has been seen
	kind             uint8
	length, got      uint32
	body             []byte
	open, skip       bool // a message is unfinished; it is not kept
}

func newChunkReader(br *bufio.Reader) *chunkReader {
	return &chunkReader{br: br, chunkSize: 128, budget: 2 * maxCommand}
}

// allowMedia lets audio and video through once the peer may publish.
func (r *chunkReader) allowMedia(maxMessage int) {
	r.media, r.budget = maxMessage, 2*maxMessage+2*maxCommand
}

// read returns the next message that is wanted.
func (r *chunkReader) read() (packet, error) {
	for {
		s, format, err := r.basicHeader()
		if err != nil {
			return packet{}, err
		}
		if format == 3 && s.open {
			err = r.repeatedTimestamp(s)
		} else {
			err = r.messageHeader(s, format)
		}
		if err != nil {
			return packet{}, err
		}
		if err := r.payload(s); err != nil {
			return packet{}, err
		}
		if s.got < s.length {
			continue
		}
		p := packet{kind: s.kind, timestamp: s.timestamp, body: s.body}
		skip := s.skip
		r.drop(s)
		if !skip {
			return p, nil
		}
	}
}

// basicHeader reads format and chunk stream id, section 5.3.1.1.
func (r *chunkReader) basicHeader() (*chunkStream, byte, error) {
	b, err := r.br.ReadByte()
	if err != nil {
		return nil, 0, fmt.Errorf("read chunk header: %w", err)
	}
	id := uint32(b & 0x3f)
	if more := 1 + int(id); id < 2 { // ids from 64 on have one or two bytes more
		if err = r.fill(more); err != nil {
			return nil, 0, err
		}
		id = 64 + uint32(r.header[0])
		if more == 2 {
			id += uint32(r.header[1]) << 8
		}
	}
	s, err := r.stream(id)
	return s, b >> 6, err
}

func (r *chunkReader) stream(id uint32) (*chunkStream, error) {
	var s *chunkStream
	if id < uint32(len(r.low)) {
		s = r.low[id]
	} else {
		s = r.high[id]
	}
	if s != nil {
		return s, nil
	}
	if r.streams++; r.streams > maxChunkStreams {
		return nil, fmt.Errorf("%w: more than %d chunk streams", errChunk, maxChunkStreams)
	}
	s = &chunkStream{}
	if id < uint32(len(r.low)) {
		r.low[id] = s
		return s, nil
	}
	if r.high == nil {
		r.high = map[uint32]*chunkStream{}
	}
	r.high[id] = s
	return s, nil
}

func (r *chunkReader) fill(n int) error {
	for i := range n {
		b, err := r.br.ReadByte()
		if err != nil {
			return fmt.Errorf("read chunk header: %w", err)
		}
		r.header[i] = b
	}
	return nil
}

// messageHeader starts a message, section 5.3.1.2. A message that was not finished before is forgotten.
func (r *chunkReader) messageHeader(s *chunkStream, format byte) error {
	r.drop(s)
	if err := r.fill([...]int{11, 7, 3, 0}[format]); err != nil {
		return err
	}
	if format <= 1 {
		s.length = uint32(r.header[3])<<16 | uint32(r.header[4])<<8 | uint32(r.header[5])
		s.kind, s.known = r.header[6], true
	}
	if !s.known { // format 1 as the first one is sent by librtmp and harmless
		return fmt.Errorf("%w: format %d without a message before it", errChunk, format)
	}
	if format == 3 {
		s.timestamp += s.delta
		return r.start(s, r.repeatedTimestamp(s))
	}
	t := uint32(r.header[0])<<16 | uint32(r.header[1])<<8 | uint32(r.header[2])
	if s.hasExtended = t == extendedMark; s.hasExtended {
		if err := r.fill(4); err != nil {
			return err
		}
		t = binary.BigEndian.Uint32(r.header[:4])
		s.extended = t
	}
	if format == 0 {
		s.timestamp, s.delta = t, 0
	} else {
		s.timestamp, s.delta = s.timestamp+t, t
	}
	return r.start(s, nil)
}

// repeatedTimestamp reads past the extended timestamp that follows a format 3 header, section 5.3.1.3. Some encoders leave it
// out and some write 0, so it counts as there when it says one of the two values that it may have.
func (r *chunkReader) repeatedTimestamp(s *chunkStream) error {
	if !s.hasExtended {
		return nil
	}
	b, err := r.br.Peek(4)
	if err != nil {
		return fmt.Errorf("read chunk header: %w", err)
	}
	if v := binary.BigEndian.Uint32(b); v == s.extended || v == 0 {
		_, err = r.br.Discard(4)
	}
	return err
}

// start decides what becomes of the message whose header was just read. Nothing is allocated before.
func (r *chunkReader) start(s *chunkStream, err error) error {
	if err != nil {
		return err
	}
	limit := 0
	switch s.kind {
	case typeSetChunkSize, typeAbort, typeAck, typeUserControl, typeWindowAckSize, typePeerBandwidth:
		limit = maxControl
	case typeCommandAMF0, typeCommandAMF3:
		limit = maxCommand
	case typeDataAMF0, typeDataAMF3:
		if r.media > 0 && s.length <= maxCommand {
			limit = maxCommand
		}
	case typeAudio, typeVideo, typeAggregate:
		limit = r.media
	}
	s.open, s.skip = true, limit == 0
	if s.skip {
		return nil
	}
	if int(s.length) > limit {
		return fmt.Errorf("%w: message type %d of %d bytes, at most %d are taken", errChunk, s.kind, s.length, limit)
	}
	if r.held += int(s.length); r.held > r.budget {
		return fmt.Errorf("%w: unfinished messages of %d bytes", errChunk, r.held)
	}
	s.body = make([]byte, s.length)
	return nil
}

// payload reads one chunk's worth of the message.
func (r *chunkReader) payload(s *chunkStream) error {
	n := min(s.length-s.got, r.chunkSize)
	var err error
	if s.skip {
		_, err = r.br.Discard(int(n))
	} else {
		err = readFull(r.br, s.body[s.got:s.got+n])
	}
	if err != nil {
		return fmt.Errorf("read chunk: %w", err)
	}
	s.got += n
	return nil
}

// drop forgets the unfinished message of a chunk stream.
func (r *chunkReader) drop(s *chunkStream) {
	if s.open && !s.skip {
		r.held -= int(s.length)
	}
	s.open, s.skip, s.got, s.body = false, false, 0, nil
}

// abort serves Abort Message, section 5.4.2.
func (r *chunkReader) abort(id uint32) {
	if id < uint32(len(r.low)) {
		if s := r.low[id]; s != nil {
			r.drop(s)
		}
		return
	}
	if s := r.high[id]; s != nil {
		r.drop(s)
	}
}

// readFull is io.ReadFull without the interface, so that nothing escapes.
func readFull(br *bufio.Reader, p []byte) error {
	for len(p) > 0 {
		n, err := br.Read(p)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return err
		}
	}
	return nil
}
