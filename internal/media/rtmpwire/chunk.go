// Package rtmpwire implements RTMP 1.0 for servers and publishers: handshake, chunks, protocol control messages, AMF0
// and commands. Package flv reads the contents of media messages. All input is hostile: depth, number and size are
// bounded before anything is allocated.
//
// It must never know sockets, stream keys, tags or codecs. No goroutines.
package rtmpwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
)

// Message types, RTMP 1.0 sections 5.4 and 7.1.
const (
	TypeSetChunkSize  = 1
	TypeAbort         = 2
	TypeAck           = 3
	TypeUserControl   = 4
	TypeWindowAckSize = 5
	TypePeerBandwidth = 6
	TypeAudio         = 8
	TypeVideo         = 9
	TypeDataAMF3      = 15
	TypeCommandAMF3   = 17
	TypeDataAMF0      = 18
	TypeCommandAMF0   = 20
	TypeAggregate     = 22
)

const (
	maxChunkStreams = 32      // encoders use three to six
	maxControl      = 1 << 10 // bytes of a protocol control message
	maxCommand      = 1 << 16 // bytes of a command or a data message
	extendedMark    = 0xffffff
)

// ErrChunk means that what comes is no chunk stream, or one that asks for too much.
var ErrChunk = errors.New("malformed RTMP chunk")

// Packet is one whole RTMP message. Body belongs to the caller of Read.
type Packet struct {
	Kind      uint8
	Timestamp uint32 // milliseconds modulo 2^32
	Body      []byte
}

// Reader joins chunks to messages, RTMP 1.0 section 5.3. What it does not want it reads past without keeping it, and
// it never holds more than budget bytes of unfinished messages, whatever the peer announces.
type Reader struct {
	br *bufio.Reader
	// ChunkSize is the size of the peer's chunks, as its last Set Chunk Size says. It bounds no allocation: a message
	// is at most as long as it may be.
	ChunkSize uint32
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

// NewReader reads commands and protocol control messages alone, until AllowMedia.
func NewReader(br *bufio.Reader) *Reader {
	return &Reader{br: br, ChunkSize: 128, budget: 2 * maxCommand}
}

// AllowMedia lets audio and video through once the peer may publish.
func (r *Reader) AllowMedia(maxMessage int) {
	r.media, r.budget = maxMessage, 2*maxMessage+2*maxCommand
}

// Read returns the next message that is wanted.
func (r *Reader) Read() (Packet, error) {
	for {
		s, format, err := r.basicHeader()
		if err != nil {
			return Packet{}, err
		}
		if format == 3 && s.open {
			err = r.repeatedTimestamp(s)
		} else {
			err = r.messageHeader(s, format)
		}
		if err != nil {
			return Packet{}, err
		}
		if err := r.payload(s); err != nil {
			return Packet{}, err
		}
		if s.got < s.length {
			continue
		}
		p := Packet{Kind: s.kind, Timestamp: s.timestamp, Body: s.body}
		skip := s.skip
		r.drop(s)
		if !skip {
			return p, nil
		}
	}
}

// basicHeader reads format and chunk stream id, section 5.3.1.1.
func (r *Reader) basicHeader() (*chunkStream, byte, error) {
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

func (r *Reader) stream(id uint32) (*chunkStream, error) {
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
		return nil, fmt.Errorf("%w: more than %d chunk streams", ErrChunk, maxChunkStreams)
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

func (r *Reader) fill(n int) error {
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
func (r *Reader) messageHeader(s *chunkStream, format byte) error {
	r.drop(s)
	if err := r.fill([...]int{11, 7, 3, 0}[format]); err != nil {
		return err
	}
	if format <= 1 {
		s.length = uint32(r.header[3])<<16 | uint32(r.header[4])<<8 | uint32(r.header[5])
		s.kind, s.known = r.header[6], true
	}
	if !s.known { // format 1 as the first one is sent by librtmp and harmless
		return fmt.Errorf("%w: format %d without a message before it", ErrChunk, format)
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

// repeatedTimestamp reads past the extended timestamp that follows a format 3 header, section 5.3.1.3. Some encoders
// leave it out and some write 0, so it counts as there when it says one of the two values that it may have.
func (r *Reader) repeatedTimestamp(s *chunkStream) error {
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
func (r *Reader) start(s *chunkStream, err error) error {
	if err != nil {
		return err
	}
	limit := 0
	switch s.kind {
	case TypeSetChunkSize, TypeAbort, TypeAck, TypeUserControl, TypeWindowAckSize, TypePeerBandwidth:
		limit = maxControl
	case TypeCommandAMF0, TypeCommandAMF3:
		limit = maxCommand
	case TypeDataAMF0, TypeDataAMF3:
		if r.media > 0 && s.length <= maxCommand {
			limit = maxCommand
		}
	case TypeAudio, TypeVideo, TypeAggregate:
		limit = r.media
	}
	s.open, s.skip = true, limit == 0
	if s.skip {
		return nil
	}
	if int(s.length) > limit {
		return fmt.Errorf("%w: message type %d of %d bytes, at most %d are taken", ErrChunk, s.kind, s.length, limit)
	}
	if r.held += int(s.length); r.held > r.budget {
		return fmt.Errorf("%w: unfinished messages of %d bytes", ErrChunk, r.held)
	}
	return nil
}

// payload reads one chunk's worth of the message.
func (r *Reader) payload(s *chunkStream) error {
	n := min(s.length-s.got, r.ChunkSize)
	var err error
	switch {
	case s.skip:
		_, err = r.br.Discard(int(n))
	case n == s.length && r.br.Buffered() >= int(n): // all of it is here: memory that is not cleared first will do
		var whole []byte
		whole, err = r.br.Peek(int(n))
		s.body = append([]byte(nil), whole...)
		_, _ = r.br.Discard(len(whole)) // they are there
	default:
		if s.body == nil {
			s.body = make([]byte, s.length)
		}
		err = ReadFull(r.br, s.body[s.got:s.got+n])
	}
	if err != nil {
		return fmt.Errorf("read chunk: %w", err)
	}
	s.got += n
	return nil
}

// drop forgets the unfinished message of a chunk stream.
func (r *Reader) drop(s *chunkStream) {
	if s.open && !s.skip {
		r.held -= int(s.length)
	}
	s.open, s.skip, s.got, s.body = false, false, 0, nil
}

// Abort serves Abort Message, section 5.4.2.
func (r *Reader) Abort(id uint32) {
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

// Reset goes on reading from br: media wants a larger buffer than commands.
func (r *Reader) Reset(br *bufio.Reader) { r.br = br }

// Held returns how many bytes of unfinished messages are held, and how many may be.
func (r *Reader) Held() (held, most int) { return r.held, r.budget }

// ReadFull is io.ReadFull without the interface, so that nothing escapes.
func ReadFull(br *bufio.Reader, p []byte) error {
	for len(p) > 0 {
		n, err := br.Read(p)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return err
		}
	}
	return nil
}
