package dashboard

import (
	"math"
	"net/http"
	"strconv"
	"strings"
)

// fieldAt says at which field of a form a message of the service stands, by how its path begins.
type fieldAt struct{ path, field string }

// beside sorts messages of the service by the fields that they stand beside. Each begins with the path of its field;
// top is what belongs to none.
func beside(messages []string, fields []fieldAt) (bad map[string]string, top []string) {
	bad = map[string]string{}
	for _, m := range messages {
		path, rest, _ := strings.Cut(m, " ")
		field := ""
		for _, known := range fields {
			if strings.HasPrefix(path, known.path) {
				field = known.field
			}
		}
		if field == "" {
			top = append(top, capital(m)+".")
			continue
		}
		bad[field] = "This " + rest + "."
	}
	return bad, top
}

// typed reads what was typed into the fields of a form, as text that a page can show.
func typed(r *http.Request, fields ...string) map[string]string {
	out := map[string]string{}
	for _, name := range fields {
		out[name] = strings.ToValidUTF8(strings.TrimSpace(r.PostFormValue(name)), "\uFFFD")
	}
	return out
}

const maxSeconds = 1e6 // that a time has which is typed; no asset is as long

// secondsOf reads a time that is typed as h:mm:ss.s, m:ss or s.
func secondsOf(text string) (float64, bool) {
	parts := strings.Split(strings.Replace(text, ",", ".", 1), ":")
	if len(parts) > 3 {
		return 0, false
	}
	sum := 0.0
	for i, part := range parts {
		n, err := strconv.ParseFloat(part, 64)
		last := i == len(parts)-1
		switch {
		case err != nil, n > maxSeconds, strings.Trim(part, "0123456789.") != "":
			return 0, false
		case !last && n != math.Trunc(n), i > 0 && n >= 60:
			return 0, false
		}
		sum = sum*60 + n
	}
	return sum, true
}
