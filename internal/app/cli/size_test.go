package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSizeCommand(t *testing.T) {
	t.Parallel()
	o := try(t, &fakeTokens{}, "size", "--streams=100", "--viewers=10000")
	for _, want := range []string{
		"nodes ", "Gbit/s in, ", "transactions a second", "of WAL", "PUT requests a day", "first limit ",
	} {
		if o.code != 0 || strings.Count(o.out, want) != 1 {
			t.Errorf("code %d, no %q once in\n%s%s", o.code, want, o.out, o.err)
		}
	}
	o = try(t, &fakeTokens{}, "size", "--streams=100", "--viewers=10000", "--nodes=7", "--json")
	var got sizeLine
	if err := json.Unmarshal([]byte(o.out), &got); err != nil || o.code != 0 {
		t.Fatalf("code %d: %s%s: %v", o.code, o.out, o.err, err)
	}
	if got.Nodes != 7 || got.Connections != 7*19 || len(got.Limits) != 5 || got.Stored == 0 ||
		got.Limits[0].Used < got.Limits[1].Used {
		t.Errorf("%+v", got)
	}
}

func TestSizeRefuses(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{
		"--streams=-1", "--streams=1000001", "--viewers=many", "--bitrate=0", "--bitrate=NaN", "--link=-1", "--cores=0",
		"--rungs=11", "--nodes=1.5",
	} {
		name, _, _ := strings.Cut(flag, "=")
		if o := try(t, &fakeTokens{}, "size", flag); o.code != ExitUsage || !strings.Contains(o.err, name) {
			t.Errorf("%s: code %d: %s%s", flag, o.code, o.out, o.err)
		}
	}
}
