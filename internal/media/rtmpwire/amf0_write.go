package rtmpwire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ECMAArray is written as an ECMA array; one that is read is an Object.
type ECMAArray Object

// AppendAMF0 appends values to b: float64, bool, string, nil, Object, ECMAArray, and []any as a strict array. Another
// type is a mistake of the caller, and panics.
func AppendAMF0(b []byte, values ...any) []byte {
	for _, v := range values {
		b = appendValue(b, v)
	}
	return b
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, amfNull)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, amfNumber), math.Float64bits(v))
	case bool:
		if v {
			return append(b, amfBoolean, 1)
		}
		return append(b, amfBoolean, 0)
	case string:
		if len(v) > math.MaxUint16 {
			return append(binary.BigEndian.AppendUint32(append(b, amfLongString), uint32(len(v))), v...)
		}
		return appendText(append(b, amfString), v)
	case Object:
		return appendMembers(append(b, amfObject), v)
	case ECMAArray:
		return appendMembers(binary.BigEndian.AppendUint32(append(b, amfECMAArray), uint32(len(v))), Object(v))
	case []any:
		return AppendAMF0(binary.BigEndian.AppendUint32(append(b, amfStrictArray), uint32(len(v))), v...)
	}
	panic(fmt.Sprintf("AMF0 has no %T", v))
}

func appendMembers(b []byte, o Object) []byte {
	for _, p := range o {
		b = appendValue(appendText(b, p.Name), p.Value)
	}
	return append(b, 0, 0, amfObjectEnd)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}
