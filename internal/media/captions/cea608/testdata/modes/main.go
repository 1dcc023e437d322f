// This program writes captions of all modes on all channels with the encoder of another project: one SCC file for each field.
//
//	go run . && npm install mux.js@7.1.0 && node decode.mjs
package main

import (
	"cmp"
	"log"
	"os"
	"slices"

	"github.com/Eyevinn/go-608/cta608"
	"github.com/Eyevinn/go-608/scc"
)

const rate = 30000.0 / 1001

// said is what is sent from a time on.
type said struct {
	at      float64 // seconds
	channel int     // 1 to 4
	tokens  []cta608.Token
}

func roll(rows int) cta608.Token { return cta608.SetMode{Mode: cta608.RollUp, RollUpRows: rows} }
func at(row, indent int) cta608.Token {
	return cta608.PAC{Row: row, Indent: indent, Pen: cta608.Pen{Color: cta608.White}}
}
func text(s string) cta608.Token { return cta608.Chars{Text: s} }

var (
	loading = cta608.SetMode{Mode: cta608.PopOn}
	direct  = cta608.SetMode{Mode: cta608.PaintOn}
	next    = cta608.Command{Op: cta608.CR}
	erase   = cta608.Command{Op: cta608.EDM}
	empty   = cta608.Command{Op: cta608.ENM}
	show    = cta608.Command{Op: cta608.EOC}
	back    = cta608.Command{Op: cta608.BS}
)

func send(at float64, channel int, tokens ...cta608.Token) said { return said{at, channel, tokens} }

func script() []said {
	return []said{
		// CC1, as broadcasters' encoders roll up: every line begins with the mode, whatever came before.
		send(1, 1, roll(3), next, at(15, 0), text(">> GOOD EVENING AND")),
		send(3, 1, roll(3), next, at(15, 0), text("WELCOME TO THE NEWS.")),
		send(5, 1, roll(3), next, at(15, 0), text("IT IS RAINING, BUT")),
		send(7, 1, roll(3), next, at(15, 0), text("NOT FOR LONG.")),
		send(9, 1, roll(2), next, at(15, 0), text("TWO ROWS ARE ENOUGH")), // and fewer rows
		send(11, 1, roll(2), next, at(3, 0), text("AT THE TOP NOW")),      // and another place
		send(13, 1, erase),
		// then pop-on captions, while the last one is not shown any more
		send(14, 1, loading, empty, at(14, 4), text("Pop-on, two rows:"), at(15, 4), text("¿qué tal? ♪ Ü “ok”")),
		send(17, 1, show),
		send(19, 1, loading, empty, at(15, 8), text("The next replaces it")),
		send(21, 1, show),
		send(23, 1, erase),
		// CC2, beside it in the same field
		send(4, 2, roll(2), next, at(15, 4), text("BUENAS NOCHES")),
		send(6, 2, roll(2), next, text("Y BIENVENIDOS")),
		send(8, 2, roll(2), next, text("ESTÁ LLOVIENDO")),
		send(12, 2, erase),
		// CC3, paint-on: written in place, and corrected there
		send(2, 3, direct, at(13, 8), text("Painted on,"), at(14, 8), text("row by row")),
		send(7, 3, erase),
		send(9, 3, direct, at(15, 0), text("no traced"), back, text(" of it")),
		send(12, 3, erase),
		// CC4, pop-on beside it
		send(5, 4, loading, empty, at(1, 0), text("haha hehe")),
		send(8, 4, show),
		send(10.5, 4, erase),
	}
}

func main() {
	all := script()
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.at, b.at) })
	for field, name := range []string{"modes.field1.scc", "modes.field2.scc"} {
		var pairs []scc.TimedPair
		frame := 0
		for _, x := range all {
			if (x.channel-1)/2 != field {
				continue
			}
			b := cta608.Serialize(x.tokens, cta608.SerializeOptions{Field: field + 1, Channel: (x.channel-1)%2 + 1})
			frame = max(frame, int(x.at*rate))
			for i := 0; i+1 < len(b); i += 2 {
				if b[i]&0x77 == 0x14 && b[i+1]&0x70 == 0x20 && field == 1 { // commands of field 2 have a byte of their own, which this encoder does not know
					b[i] ^= 0x81
				}
				pairs = append(pairs, scc.TimedPair{Frame: frame, Pair: b[i : i+2]})
				frame++
			}
		}
		f, err := os.Create(name)
		if err != nil {
			log.Fatal(err)
		}
		if err := scc.Write(f, &scc.SCCFile{FPS: rate, Entries: scc.GroupPairs(pairs)}); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
