package fault_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"millrace/internal/fault"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		kind fault.Kind
		want bool
	}{
		"none":       {nil, fault.Internal, false},
		"unmarked":   {errors.New("x"), fault.Internal, true},
		"wrapped":    {fmt.Errorf("do: %w", fault.New(fault.NotFound, "x")), fault.NotFound, true},
		"other kind": {fault.New(fault.NotFound, "x"), fault.Conflict, false},
	} {
		if got := fault.Is(tt.err, tt.kind); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestMessages: the path of a field is apart from what is said of it, and the sentence has both.
func TestMessages(t *testing.T) {
	t.Parallel()
	var l fault.List
	l.At("inputs[0].url", "may have at most %d bytes", 9)
	l.At("url", ": the port is missing")
	l.Add("nothing can be changed")
	sentences := []string{
		"inputs[0].url may have at most 9 bytes", "url: the port is missing", "nothing can be changed",
	}
	if got := fault.Messages(l.Err()); !slices.Equal(got, sentences) {
		t.Errorf("told %q", got)
	}
	if m := fault.ByField(fmt.Errorf("check: %w", l.Err())); m[0].Path != "inputs[0].url" || m[2].Path != "" {
		t.Errorf("fields %q", m)
	}
	err := fault.At(fault.Conflict, "address", "is that of %s", "another")
	if m := fault.ByField(err); len(m) != 1 || m[0] != (fault.Message{Path: "address", Text: "is that of another"}) {
		t.Errorf("fields %q", m)
	}
}

func TestPermanent(t *testing.T) {
	t.Parallel()
	absent := fault.New(fault.NotFound, "no such thing")
	ours := fault.Ours(fault.New(fault.NotFound, "object x does not exist"))
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":              {nil, false},
		"unmarked":          {errors.New("x"), false},
		"input":             {fault.New(fault.Invalid, "x"), true},
		"absent":            {fmt.Errorf("do: %w", absent), true},
		"away":              {fault.New(fault.Unavailable, "x"), false},
		"of our storage":    {fmt.Errorf("do: %w", ours), false},
		"a file at fault":   {fault.Wrap(fault.Invalid, ours, "the file is damaged"), true},
		"and what followed": {errors.Join(fault.New(fault.Invalid, "x"), ours), true},
	} {
		if got := fault.Permanent(tt.err); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestOutside(t *testing.T) {
	t.Parallel()
	dead := fault.New(fault.Unavailable, "the host refuses connections")
	dead.Remote = true
	ours := fault.Ours(fault.New(fault.Unavailable, "the storage is away"))
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":             {nil, false},
		"unmarked":         {errors.New("x"), false},
		"input":            {fault.New(fault.Invalid, "x"), true},
		"database away":    {fault.New(fault.Unavailable, "x"), false},
		"of our storage":   {fmt.Errorf("do: %w", ours), false},
		"another's server": {fmt.Errorf("do: %w", dead), true},
		"said in other ways": {
			fault.Wrap(fault.Unavailable, fmt.Errorf("get: %w", dead), "inputs[1]: the image can't be fetched"), true,
		},
	} {
		if got := fault.Outside(tt.err); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestAway(t *testing.T) {
	t.Parallel()
	ours := fault.Ours(fault.New(fault.Unavailable, "the storage is away"))
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":               {nil, false},
		"unmarked":           {errors.New("x"), false},
		"another's":          {fault.New(fault.Unavailable, "x"), false},
		"of our storage":     {fmt.Errorf("do: %w", ours), true},
		"absent there":       {fault.Ours(fault.New(fault.NotFound, "object x does not exist")), false},
		"said in other ways": {fault.Wrap(fault.Unavailable, fmt.Errorf("get: %w", ours), "ask again"), true},
		"and what followed":  {errors.Join(ours, errors.New("close")), true},
		"a file at fault":    {fault.Wrap(fault.Invalid, ours, "the file is damaged"), false},
	} {
		if got := fault.Away(tt.err); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestListTakes: what is wrong with the input is told together; anything else is the caller's.
func TestListTakes(t *testing.T) {
	t.Parallel()
	var other, absent fault.List
	other.Add("b")
	absent.AbsentAt("c", "must be left out")
	var l fault.List
	l.Add("a")
	for _, err := range []error{nil, fmt.Errorf("check: %w", other.Err()), absent.Err()} {
		if got := l.Take(err); got != nil {
			t.Errorf("%v is given back: %v", err, got)
		}
	}
	for _, err := range []error{
		errors.New("x"), fault.New(fault.Conflict, "x"), fault.Ours(fault.New(fault.Invalid, "x")),
	} {
		if got := l.Take(err); got != err { //nolint:errorlint // exactly this value
			t.Errorf("%v is not given back: %v", err, got)
		}
	}
	err := l.Err()
	all := []string{"a", "b", "c must be left out"}
	if got := fault.Messages(err); !slices.Equal(got, all) || !fault.IsAbsent(err) {
		t.Errorf("told %q, %v", got, err)
	}
}
