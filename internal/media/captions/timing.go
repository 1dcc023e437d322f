package captions

import (
	"strings"
	"time"
)

// looksLikeTiming reports whether a line is meant to be a timing line: an arrow with nothing but a time before it.
// Text may hold an arrow too ("go --> there").
func looksLikeTiming(line string) bool {
	before, _, found := strings.Cut(line, "-->")
	if !found {
		return false
	}
	before = strings.Trim(before, " \t")
	return strings.ContainsRune(before, ':') && strings.Trim(before, "0123456789:.,- \t") == ""
}

// parseTiming reads "start --> end settings". Each time is [hours:]minutes:seconds[,.]milliseconds.
func parseTiming(line string) (start, end time.Duration, settings string, ok bool) {
	before, after, found := strings.Cut(line, "-->")
	if !found {
		return 0, 0, "", false
	}
	start, rest, ok := parseTime(strings.TrimLeft(before, " \t"))
	if !ok || strings.Trim(rest, " \t") != "" {
		return 0, 0, "", false
	}
	end, rest, ok = parseTime(strings.TrimLeft(after, " \t"))
	if !ok || (rest != "" && rest[0] != ' ' && rest[0] != '\t') {
		return 0, 0, "", false
	}
	return start, end, strings.Trim(rest, " \t"), true
}

// parseTime reads one time from the front of s and returns what follows it.
func parseTime(s string) (t time.Duration, rest string, ok bool) {
	var fields [3]int
	n := 0
	for {
		value, digits, tail := leadingDigits(s)
		if digits == 0 || digits > 4 {
			return 0, s, false
		}
		fields[n] = value
		n++
		s = tail
		if s == "" || s[0] != ':' || n == len(fields) {
			break
		}
		s = s[1:]
	}
	if n < 2 {
		return 0, s, false
	}
	hours, minutes, seconds := 0, fields[0], fields[1]
	if n == 3 {
		hours, minutes, seconds = fields[0], fields[1], fields[2]
	}
	if minutes > 59 || seconds > 59 {
		return 0, s, false
	}
	t = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
	if s == "" || (s[0] != '.' && s[0] != ',') {
		return t, s, true // some writers leave out whole milliseconds
	}
	fraction, digits, tail := leadingDigits(s[1:])
	if digits == 0 || digits > 9 {
		return 0, s, false
	}
	for ; digits > 3; digits-- {
		fraction /= 10
	}
	for ; digits < 3; digits++ {
		fraction *= 10
	}
	return t + time.Duration(fraction)*time.Millisecond, tail, true
}

// leadingDigits reads at most nine digits.
func leadingDigits(s string) (value, digits int, rest string) {
	for digits < len(s) && digits <= 9 && s[digits] >= '0' && s[digits] <= '9' {
		value = value*10 + int(s[digits]-'0')
		digits++
	}
	return value, digits, s[digits:]
}

// appendTime writes t as hh:mm:ss.mmm; hours take more digits when they need them.
func appendTime(dst []byte, t time.Duration) []byte {
	ms := t.Milliseconds()
	hours := ms / 3_600_000
	if hours >= 1000 {
		dst = append(dst, byte('0'+hours/1000%10))
	}
	if hours >= 100 {
		dst = append(dst, byte('0'+hours/100%10))
	}
	dst = append2(dst, hours%100)
	dst = append2(append(dst, ':'), ms/60_000%60)
	dst = append2(append(dst, ':'), ms/1000%60)
	dst = append(dst, '.', byte('0'+ms/100%10))
	return append2(dst, ms%100)
}

// append2 writes v, 0 to 99, with two digits.
func append2(dst []byte, v int64) []byte { return append(dst, byte('0'+v/10%10), byte('0'+v%10)) }
