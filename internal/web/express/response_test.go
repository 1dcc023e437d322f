package express

import "testing"

// TestAppendValue: no value ends its line, and none has blanks around it.
func TestAppendValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "", "a": "a", "a\r\nB: c": "a  B: c", "a\n": "a", "\ra": "a", " a": "a", "a\t": "a", "\t b c ": "b c",
		" \t ": "",
	} {
		if got := string(appendValue([]byte("A: "), value)); got != "A: "+want {
			t.Errorf("%q becomes %q", value, got)
		}
	}
}
