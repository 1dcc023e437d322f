package aac

import (
	"math/bits"
	"sync"
)

// What decoders read of a codeword: how long it is, and what follows it. The codewords of ISO 14496-3 are in the order
// of their lengths (tables 4.A.1 to 4.A.12), so that which of one length they are, in order, says all of them.

// spectrum is one of the codebooks 1 to 11 of spectra: by the length of its codewords, for each of them in order how
// many signs follow, and in codebook 11 three more for each escape.
type spectrum struct {
	values int // that a codeword has
	words  [17]string
}

var spectra = [...]spectrum{ //nolint:gochecknoglobals // a table
	{4, [17]string{
		1: "0", 5: "00000000", 7: "000000000000000000000000", 9: "000000000000000000000000", 10: "00000000",
		11: "0000000000000000",
	}},
	{4, [17]string{
		3: "0", 4: "0", 5: "0000000", 6: "000000000000000000000000", 7: "000000000000000", 8: "0000000000000000000",
		9: "00000000000000",
	}},
	{4, [17]string{
		1: "0", 4: "1111", 5: "22", 6: "222323", 7: "433", 8: "11223", 9: "232331221224334", 10: "323244332333223",
		11: "24334423", 12: "333334444", 13: "223", 14: "343", 15: "44432", 16: "33",
	}},
	{4, [17]string{
		4: "4333312022", 5: "221211", 7: "444433333", 8: "333333322222222222211", 9: "11444444",
		10: "33333333343334", 11: "44222222433", 12: "33",
	}},
	{2, [17]string{
		1: "0", 4: "0000", 5: "0000", 7: "0000", 8: "000000000000", 9: "000000000000", 10: "000000000000",
		11: "000000000000000000", 12: "0000000000", 13: "0000",
	}},
	{2, [17]string{
		4: "000000000", 6: "0000000000000000", 7: "0000000000000", 8: "00000000", 9: "00000000000000000000000",
		10: "00000000", 11: "0000",
	}},
	{2, [17]string{
		1: "0", 3: "11", 4: "2", 6: "2211", 7: "22211", 8: "2222222211", 9: "22212122222222", 10: "211222222222222",
		11: "11222222", 12: "2222",
	}},
	{2, [17]string{
		3: "2", 4: "21212", 5: "0112222", 6: "2222211222", 7: "22222221212222", 8: "222121222222222",
		9: "22121222", 10: "2112",
	}},
	{2, [17]string{
		1: "0", 3: "11", 4: "2", 6: "2211", 7: "222", 8: "11222222", 9: "22112222222", 10: "12122222222122222222",
		11: "1222122221222211222222222222212", 12: "22122222222222222222222122122222221222",
		13: "22222222222212212222122222222222", 14: "22222222222222", 15: "2222",
	}},
	{2, [17]string{
		4: "222", 5: "21122222", 6: "11222202211222", 7: "22222222212122222", 8: "2222222121222222222222222",
		9: "2221222221222222222222222221212", 10: "22222212222221222222222222222221212122222",
		11: "2222222222121222122212", 12: "22222122",
	}},
	{2, [17]string{
		4: "02", 5: "811222", 6: "2221212", 7: "2222221122222222",
		8:  "22222225555525121525555222225522555225255525225522215522221",
		9:  "2552252522222225221222222122222222222222122222222222422",
		10: "22224212222222222222222222222222222221222222222222222222122222222222222222222222222211222222222",
		11: "2222222222222222212212122212222211222212212", 12: "112112",
	}},
}

// steps are the differences of scale factors, 60 more than they are, by the lengths of their codewords.
var steps = [20][]uint8{ //nolint:gochecknoglobals // a table
	1: {60}, 3: {59}, 4: {61, 58, 62}, 5: {57, 63}, 6: {56, 64, 55, 65}, 7: {66, 54, 67}, 8: {53, 68, 52, 69, 51},
	9: {70, 50, 49, 71}, 10: {72, 48, 73, 47, 74, 46}, 11: {76, 75, 77, 78, 45, 43}, 12: {44, 79, 42, 41, 80, 40},
	13: {81, 39, 82, 38, 83}, 14: {37, 35, 85, 33, 36, 34, 84, 32}, 15: {87, 89, 30, 31},
	16: {86, 29, 26, 27, 28, 24, 88}, 17: {25, 22, 23}, 18: {90, 21, 19, 3, 1, 2, 0},
	19: {
		98, 99, 100, 101, 102, 117, 97, 91, 92, 93, 94, 95, 96, 104, 111, 112, 113, 114, 115, 116, 110, 105, 106, 107,
		108, 109, 118, 6, 8, 9, 10, 5, 103, 120, 119, 4, 7, 15, 16, 18, 20, 17, 11, 12, 14, 13,
	},
}

// noStep is a difference of 0.
const noStep = 60

// quick is how many bits are looked up at once; most codewords are not longer.
const quick = 9

// word is a codeword: its length in bits and what it stands for.
type word struct{ length, value uint8 }

// code is a prefix code in the order of its codewords' lengths.
type code struct {
	values int // that a codeword has, in a spectrum
	most   int // bits of the longest codeword, more than quick
	quick  [1 << quick]word
	spans  [1 << quick]uint8 // of a spectrum's codewords with their signs, in bits; 0: it is longer, or has an escape
	words  []word
	// By length, of codewords of most bits: what the next longer ones begin with, and which of words is the first one.
	above, first [20]int
}

// newCode makes a code of its codewords in order.
func newCode(words []word) *code {
	c := &code{most: int(words[len(words)-1].length), words: words}
	at := 0 // the next codeword, of most bits
	for i, w := range words {
		length := int(w.length)
		if i == 0 || words[i-1].length != w.length {
			c.first[length] = i - at>>(c.most-length)
		}
		if span := quick - length; span >= 0 {
			from := at >> (c.most - length) << span
			for k := range 1 << span {
				c.quick[from+k] = w
			}
		}
		at += 1 << (c.most - length)
		c.above[length] = at
	}
	return c
}

// find is the codeword that the most bits begin with; every sequence of bits begins with one.
func (c *code) find(ahead int) word {
	if w := c.quick[ahead>>(c.most-quick)]; w.length > 0 {
		return w
	}
	for length := quick + 1; length < c.most; length++ {
		if ahead < c.above[length] {
			return c.words[c.first[length]+ahead>>(c.most-length)]
		}
	}
	return c.words[c.first[c.most]+ahead]
}

// codes are those of spectra and of the differences of scale factors.
type codes struct {
	spectra [len(spectra)]*code
	steps   *code
}

var books = sync.OnceValue(func() *codes { //nolint:gochecknoglobals // a table that is made of two
	var out codes
	for i, s := range spectra {
		var words []word
		for length, of := range s.words {
			for _, v := range []byte(of) {
				signs, escapes := v-'0', byte(0)
				if i == len(spectra)-1 {
					signs, escapes = signs%3, signs/3
				}
				words = append(words, word{uint8(length), signs | escapes<<4})
			}
		}
		c := newCode(words)
		c.values = s.values
		for k, w := range c.quick {
			if w.value>>4 == 0 && w.length > 0 {
				c.spans[k] = w.length + w.value
			}
		}
		out.spectra[i] = c
	}
	var words []word
	for length, of := range steps {
		for _, v := range of {
			words = append(words, word{uint8(length), v})
		}
	}
	out.steps = newCode(words)
	return &out
})

// leadingOnes counts the ones that 32 bits begin with.
func leadingOnes(v uint32) int { return bits.LeadingZeros32(^v) }
