package cea608

// standard is a character of the basic set: ASCII, but for some, CTA-608-E table 50.
func standard(b byte) rune {
	if r, other := unlikeASCII[b]; other {
		return r
	}
	return rune(b)
}

//nolint:gochecknoglobals // tables
var (
	unlikeASCII = map[byte]rune{
		0x27: '’', 0x2a: 'á', 0x5c: 'é', 0x5e: 'í', 0x5f: 'ó', 0x60: 'ú', 0x7b: 'ç', 0x7c: '÷', 0x7d: 'Ñ', 0x7e: 'ñ',
		0x7f: '█',
	}
	// special are the characters 0x30 to 0x3f behind 0x11, table 49; the tenth is a transparent space.
	special = [16]rune{'®', '°', '½', '¿', '™', '¢', '£', '♪', 'à', '\u00a0', 'è', 'â', 'ê', 'î', 'ô', 'û'}
	// spanishFrench are the extended characters behind 0x12, from 0x20 on, tables 5 to 7; portugueseGerman those behind
	// 0x13, tables 8 to 10.
	spanishFrench    = [32]rune([]rune("ÁÉÓÚÜü‘¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»"))
	portugueseGerman = [32]rune([]rune("ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤│ÅåØø┌┐└┘"))
)
