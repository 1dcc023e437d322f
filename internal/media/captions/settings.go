package captions

import (
	"strconv"
	"strings"
)

// settings are the cue settings of WebVTT 3.5, each empty or valid.
type settings struct {
	vertical, line, position, size, align, region string
}

// parseSettings keeps what is valid in s; a later setting of a name replaces an earlier one.
func parseSettings(s string) settings {
	var set settings
	for field := range strings.FieldsSeq(s) {
		name, value, found := strings.Cut(field, ":")
		if !found {
			continue
		}
		switch name {
		case "vertical":
			keepOneOf(&set.vertical, value, "rl", "lr")
		case "line":
			keepAligned(&set.line, value, validLine, "start", "center", "end")
		case "position":
			keepAligned(&set.position, value, validPercent, "line-left", "center", "line-right")
		case "size":
			if validPercent(value) {
				set.size = value
			}
		case "align":
			if value == "middle" { // the name before 2015
				value = "center"
			}
			keepOneOf(&set.align, value, "start", "center", "end", "left", "right")
		case "region":
			if validRegionID(value) {
				set.region = value
			}
		}
	}
	return set
}

// String joins the settings in a fixed order.
func (s settings) String() string {
	var b strings.Builder
	for _, f := range [...]struct{ name, value string }{
		{"vertical:", s.vertical},
		{"line:", s.line},
		{"position:", s.position},
		{"size:", s.size},
		{"align:", s.align},
		{"region:", s.region},
	} {
		if f.value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.name)
		b.WriteString(f.value)
	}
	return b.String()
}

// place puts the cue where an SSA alignment says (numeric keypad: 1 to 3 bottom, 4 to 6 middle, 7 to 9 top), unless the
// cue says itself.
func (s *settings) place(keypad int) {
	if s.line == "" {
		s.line = [...]string{"", "50%,center", "0"}[(keypad-1)/3]
	}
	if s.position != "" || s.align != "" {
		return
	}
	switch keypad % 3 {
	case 1:
		s.position, s.align = "0%", "start"
	case 0:
		s.position, s.align = "100%", "end"
	}
}

func keepOneOf(to *string, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			*to = value
		}
	}
}

// keepAligned keeps "value" or "value,alignment"; an unknown alignment is left out, as players do.
func keepAligned(to *string, value string, valid func(string) bool, alignments ...string) {
	value, alignment, found := strings.Cut(value, ",")
	if !valid(value) {
		return
	}
	*to = value
	if alignment == "middle" {
		alignment = "center"
	}
	for _, a := range alignments {
		if found && a == alignment {
			*to = value + "," + a
		}
	}
}

// validPercent takes 0% to 100%, with a fraction.
func validPercent(s string) bool {
	number, found := strings.CutSuffix(s, "%")
	if !found || len(number) == 0 || len(number) > 16 || strings.Trim(number, "0123456789.") != "" ||
		number[0] == '.' || number[len(number)-1] == '.' {
		return false
	}
	v, err := strconv.ParseFloat(number, 64)
	return err == nil && v >= 0 && v <= 100
}

// validLine takes a percentage or a line number, negative from the bottom.
func validLine(s string) bool {
	if validPercent(s) {
		return true
	}
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && len(digits) <= 6 && strings.Trim(digits, "0123456789") == ""
}

func validRegionID(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsAny(s, "<>& \t\n\r:") && stripControls(s) == s
}
