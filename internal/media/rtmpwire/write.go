package rtmpwire

import "encoding/binary"

// Out is a message to be written.
type Out struct {
	ChunkStream byte   // 2 to 63; messages of one chunk stream follow one another
	Stream      uint32 // message stream
	Kind        byte
	Timestamp   uint32 // milliseconds modulo 2^32
	Head, Body  []byte // the message is both
}

// AppendMessage appends a message as chunks of at most chunkSize bytes, section 5.3. Its header is always a full one:
// it costs a frame a few bytes and makes each message readable by itself.
func AppendMessage(b []byte, m Out, chunkSize int) []byte {
	size := len(m.Head) + len(m.Body)
	stamp := min(m.Timestamp, extendedMark)
	b = append(b, m.ChunkStream, byte(stamp>>16), byte(stamp>>8), byte(stamp), byte(size>>16), byte(size>>8),
		byte(size), m.Kind)
	b = binary.LittleEndian.AppendUint32(b, m.Stream)
	if stamp == extendedMark {
		b = binary.BigEndian.AppendUint32(b, m.Timestamp)
	}
	room := chunkSize
	for _, part := range [...][]byte{m.Head, m.Body} {
		for len(part) > 0 {
			if room == 0 {
				b = append(b, 0xc0|m.ChunkStream)
				if stamp == extendedMark {
					b = binary.BigEndian.AppendUint32(b, m.Timestamp)
				}
				room = chunkSize
			}
			n := min(room, len(part))
			b = append(b, part[:n]...)
			part, room = part[n:], room-n
		}
	}
	return b
}
