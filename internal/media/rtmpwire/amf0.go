package rtmpwire

import (
	"encoding/binary"
	"errors"
	"math"
)

// AMF0 markers, section 2.1 of its specification.
const (
	amfNumber      = 0x00
	amfBoolean     = 0x01
	amfString      = 0x02
	amfObject      = 0x03
	amfNull        = 0x05
	amfUndefined   = 0x06
	amfReference   = 0x07
	amfECMAArray   = 0x08
	amfObjectEnd   = 0x09
	amfStrictArray = 0x0a
	amfDate        = 0x0b
	amfLongString  = 0x0c
	amfUnsupported = 0x0d
	amfXMLDocument = 0x0f
	amfTypedObject = 0x10
)

const (
	maxAMFDepth  = 8
	maxAMFValues = 1024
)

var errAMF = errors.New("malformed AMF0")

// Property is a member of an AMF0 object or ECMA array.
type Property struct {
	Name  string
	Value any
}

// Object is an AMF0 object or ECMA array.
type Object []Property

// Get gives the first member of a name, nil when there is none.
func (o Object) Get(name string) any {
	for _, p := range o {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// Text gives a string member, "" when there is none.
func (o Object) Text(name string) string {
	s, _ := o.Get(name).(string)
	return s
}

// Number gives a number member, 0 when there is none.
func (o Object) Number(name string) float64 {
	n, _ := o.Get(name).(float64)
	return n
}

// amfReader decodes AMF0 from outside bytes: depth and number of values are bounded, and strings are copies.
type amfReader struct {
	b      []byte
	values int
}

// DecodeAMF0 returns the values up to the end or up to the first that can not be read: what a server has to know of a
// command comes first, and encoders put all kinds of things behind it. Numbers are float64, booleans bool, strings
// string, objects and ECMA arrays Object; strict arrays []any; the rest is nil.
func DecodeAMF0(b []byte) []any {
	r := amfReader{b: b}
	var out []any
	for len(r.b) > 0 {
		v, err := r.value(0)
		if err != nil {
			return out
		}
		out = append(out, v)
	}
	return out
}

func (ar *amfReader) next(n int) ([]byte, error) {
	if n < 0 || n > len(ar.b) {
		return nil, errAMF
	}
	b := ar.b[:n]
	ar.b = ar.b[n:]
	return b, nil
}

func (ar *amfReader) length(size int) (int, error) {
	b, err := ar.next(size)
	if err != nil {
		return 0, err
	}
	if size == 2 {
		return int(binary.BigEndian.Uint16(b)), nil
	}
	return int(binary.BigEndian.Uint32(b)), nil
}

func (ar *amfReader) text(size int) (string, error) {
	n, err := ar.length(size)
	if err != nil {
		return "", err
	}
	b, err := ar.next(n)
	return string(b), err
}

func (ar *amfReader) value(depth int) (any, error) {
	if ar.values++; ar.values > maxAMFValues || depth > maxAMFDepth {
		return nil, errAMF
	}
	marker, err := ar.next(1)
	if err != nil {
		return nil, err
	}
	switch marker[0] {
	case amfNumber:
		b, err := ar.next(8)
		if err != nil {
			return nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case amfBoolean:
		b, err := ar.next(1)
		return err == nil && b[0] != 0, err
	case amfString:
		return ar.text(2)
	case amfLongString:
		return ar.text(4)
	case amfXMLDocument:
		_, err := ar.text(4)
		return nil, err
	case amfObject:
		return ar.object(depth)
	case amfTypedObject:
		if _, err := ar.text(2); err != nil { // the class's name
			return nil, err
		}
		return ar.object(depth)
	case amfECMAArray:
		if _, err := ar.next(4); err != nil { // its count is not to be relied on
			return nil, err
		}
		return ar.object(depth)
	case amfStrictArray:
		return ar.array(depth)
	case amfNull, amfUndefined, amfUnsupported:
		return nil, nil
	case amfReference:
		_, err := ar.next(2)
		return nil, err
	case amfDate:
		_, err := ar.next(10)
		return nil, err
	}
	return nil, errAMF
}

func (ar *amfReader) object(depth int) (any, error) {
	var o Object
	for {
		name, err := ar.text(2)
		if err != nil {
			return nil, err
		}
		if name == "" && len(ar.b) > 0 && ar.b[0] == amfObjectEnd {
			ar.b = ar.b[1:]
			return o, nil
		}
		v, err := ar.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o = append(o, Property{name, v})
	}
}

func (ar *amfReader) array(depth int) (any, error) {
	n, err := ar.length(4)
	if err != nil {
		return nil, err
	}
	var a []any
	for range n {
		v, err := ar.value(depth + 1)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	return a, nil
}
