package bmff

import "encoding/binary"

// Make builds a box. It is for init segments, which are made once; what is written per part is written by hand.
func Make(typ string, parts ...[]byte) []byte {
	n := 8
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 8, n)
	binary.BigEndian.PutUint32(b, uint32(n))
	copy(b[4:], typ)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Full builds a full box.
func Full(typ string, version uint8, flags uint32, parts ...[]byte) []byte {
	return Make(typ, append([][]byte{U32(uint32(version)<<24 | flags)}, parts...)...)
}

// U32 lays out big-endian words.
func U32(v ...uint32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

// U16 lays out big-endian half words.
func U16(v ...uint16) []byte {
	b := make([]byte, 0, 2*len(v))
	for _, x := range v {
		b = binary.BigEndian.AppendUint16(b, x)
	}
	return b
}
