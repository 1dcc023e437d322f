package fault_test

import (
	"errors"
	"fmt"
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
	dead := &fault.Error{Kind: fault.Unavailable, Messages: []string{"the host refuses connections"}, Remote: true}
	ours := fault.Ours(fault.New(fault.Unavailable, "the storage is away"))
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":               {nil, false},
		"unmarked":           {errors.New("x"), false},
		"input":              {fault.New(fault.Invalid, "x"), true},
		"database away":      {fault.New(fault.Unavailable, "x"), false},
		"of our storage":     {fmt.Errorf("do: %w", ours), false},
		"another's server":   {fmt.Errorf("do: %w", dead), true},
		"said in other ways": {fault.Wrap(fault.Unavailable, fmt.Errorf("get: %w", dead), "inputs[1]: the image can't be fetched"), true},
	} {
		if got := fault.Outside(tt.err); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
