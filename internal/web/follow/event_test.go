package follow

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sentEvent is what a browser makes of a server-sent event.
type sentEvent struct{ name, data string }

// parsed reads a stream of events as the HTML standard has it, section 9.2.6.
func parsed(stream string) (all []sentEvent) {
	var now sentEvent
	for _, line := range regexp.MustCompile("\r\n|\r|\n").Split(stream, -1) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if now.data != "" {
				now.data = strings.TrimSuffix(now.data, "\n")
				all = append(all, now)
			}
			now = sentEvent{}
		case field == "event":
			now.name = value
		case field == "data":
			now.data += value + "\n"
		}
	}
	return all
}

// TestEvent: whatever an event has in it, it is one event of its name, with all of that as its data.
func TestEvent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a", "a\nb", "a\r\nb\r\n", "\n\na\n\n", " a\n  b ", "data: x", ": x", "a\x00b\u2028c\u0085d",
		"a\revent: over\rdata: deleted\r\rb", "a\n\revent: over\r\n\rdata: deleted\n\r\r\nb",
		"a\r", "\rretry: 1\r", "\r\nid: 7\r\n\r\n", "a\nevent: over\ndata: deleted\n\n",
	} {
		got := parsed(string(event("page", text)))
		want := strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
		if !slices.Equal(got, []sentEvent{{"page", want}}) {
			t.Errorf("%q is sent as %q", text, got)
		}
	}
}
