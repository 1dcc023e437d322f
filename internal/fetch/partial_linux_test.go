package fetch

import (
	"path/filepath"
	"testing"
)

// TestPartialIsWrittenAhead: what has come is on its way to the disk before the end, from where an earlier attempt had
// left it, and from the start where that is begun again.
func TestPartialIsWrittenAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	open := func() *partial {
		p, err := openPartial(path, "https://example.com/f")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	write := func(p *partial, want int64) {
		t.Helper()
		if _, err := p.Write(make([]byte, 9<<20)); err != nil {
			t.Fatal(err)
		}
		if p.begun.From != want {
			t.Errorf("of %d bytes those up to %d are begun, want %d", p.size, p.begun.From, want)
		}
	}
	p := open()
	n := p.note
	n.Validator = `"1"`
	if err := p.restart(n); err != nil {
		t.Fatal(err)
	}
	write(p, 8<<20)
	if err := p.file.Close(); err != nil {
		t.Fatal(err)
	}
	p = open()
	write(p, 17<<20)
	if err := p.restart(n); err != nil {
		t.Fatal(err)
	}
	write(p, 8<<20)
	if err := p.finish(); err != nil {
		t.Fatal(err)
	}
}
