package dashboard

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"millrace/internal/fault"
)

// said is what is wrong with a form.
type said struct {
	Bad map[string]string // by the field that it stands beside
	Top []string          // what belongs to no field
}

// typed is what somebody typed into a field.
func typed(r *http.Request, name string) string {
	return strings.ToValidUTF8(strings.TrimSpace(r.PostFormValue(name)), "\uFFFD")
}

// kept reports whether a field came back as it was shown: browsers leave line breaks out of it.
func kept(typed, shown string) bool {
	return typed == strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(shown))
}

// number reads a field that may be empty; what is no number is said beside it.
func (s *said) number(field, text, want string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		s.Bad[field] = "This must be " + want + "."
		return 0, false
	}
	return n, true
}

// fieldsOf says at which field of a form a message stands, by how its path begins.
var fieldsOf = []struct{ path, field string }{ //nolint:gochecknoglobals // a table
	{"meta.title", "title"},
	{"latency_mode", "latency_mode"},
	{"playback_policies", "policy"},
	{"new_asset_settings.playback_policies", "recordings"},
	{"new_asset_settings.video_quality", "video_quality"},
	{"new_asset_settings.static_renditions", "download"},
	{"reconnect_window", "reconnect_window"},
	{"reconnect_slate_url", "reconnect_slate_url"},
	{"max_continuous_duration", "max_continuous_duration"},
	{"passthrough", "passthrough"},
	{"url", "url"},
	{"stream_key", "stream_key"},
}

// complain puts messages of the service beside their fields. Each begins with the path of its field.
func (s *said) complain(messages []string) {
	for _, m := range messages {
		path, rest, _ := strings.Cut(m, " ")
		field := ""
		for _, known := range fieldsOf {
			if strings.HasPrefix(path, known.path) {
				field = known.field
			}
		}
		if field == "" {
			s.Top = append(s.Top, m)
			continue
		}
		s.Bad[field] = "This " + rest + "."
	}
}

// refused takes what the service says against a form, and gives the status of its page. known is false where nothing
// that was typed is at fault.
func (s *said) refused(err error) (status int, known bool) {
	if fault.Is(err, fault.Invalid) {
		s.complain(fault.Messages(err))
		return http.StatusBadRequest, true
	}
	if !fault.Is(err, fault.Conflict) {
		return 0, false
	}
	if s.complain(fault.Messages(err)); len(s.Top) > 0 {
		s.Top = []string{sentence(err) + "."}
	}
	return http.StatusConflict, true
}
