// Package jpeg estimates the cost of decoding a JPEG (ITU-T T.81) before it is decoded. Bytes in, values out: it must
// never know files, sockets, time of day or a logger, and it starts no goroutines.
package jpeg

import "encoding/binary"

// MaxScans bounds the scans of one picture: a decoder may go over all of its blocks in each, however little is in
// there. Progressive pictures have about ten.
const MaxScans = 64

// Markers, ITU-T T.81 table B.1.
const (
	prefix    = 0xff
	stuffed   = 0x00
	temporary = 0x01
	restart   = 0xd0 // to 0xd7; behind them start and end of an image
	endImage  = 0xd9
	startScan = 0xda
)

// Scans counts the scans in data, behind the end of a first picture too.
func Scans(data []byte) (n int) {
	for len(data) >= 2 {
		if data[0] != prefix || data[1] == prefix {
			data = data[1:]
			continue
		}
		marker := data[1]
		data = data[2:]
		if marker == startScan {
			n++
		}
		if marker == stuffed || marker == temporary || marker >= restart && marker <= endImage || marker == startScan ||
			len(data) < 2 {
			continue // what a scan holds is gone over byte by byte
		}
		data = data[min(int(binary.BigEndian.Uint16(data)), len(data)):]
	}
	return n
}
