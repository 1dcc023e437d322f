package unsent_test

import (
	"net"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/unsent"
)

// TestBudget counts what responses hold, of each address and each connection, and memory that they share once.
func TestBudget(t *testing.T) {
	t.Parallel()
	near, _ := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	one := unsent.ConnContext(t.Context(), near)
	other := unsent.ConnContext(t.Context(), near)
	data := make([]byte, 60)
	b := unsent.New(unsent.Limits{All: 200, Address: 100, Connection: 80})
	kind := func(_ func(), err error) fault.Kind {
		if err == nil {
			return -1
		}
		return fault.KindOf(err)
	}
	var held []func()
	hold := func(release func(), err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, release)
	}
	hold(b.HoldData(one, "a", data))
	hold(b.HoldData(one, "a", data)) // again
	hold(b.HoldData(other, "b", data))
	if n := b.Held(); n != 60 {
		t.Errorf("%d bytes are held", n)
	}
	if k := kind(b.Hold(one, "a", 21)); k != fault.TooMany {
		t.Errorf("beyond a connection's: %v", k)
	}
	if k := kind(b.Hold(unsent.ConnContext(t.Context(), near), "a", 41)); k != fault.TooMany {
		t.Errorf("beyond an address's: %v", k)
	}
	hold(b.Hold(t.Context(), "a", 40))
	hold(b.Hold(t.Context(), "c", 100))
	if k := kind(b.Hold(t.Context(), "d", 1)); k != fault.Unavailable {
		t.Errorf("beyond all: %v", k)
	}
	for _, release := range held {
		release()
	}
	if n := b.Held(); n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
	hold(b.Hold(one, "a", 1000)) // nothing else is unsent
	if k := kind(b.Hold(one, "a", 1)); k != fault.TooMany {
		t.Errorf("beside a large one: %v", k)
	}
	var none *unsent.Budget
	if k := kind(none.Hold(one, "a", 1<<40)); k != -1 {
		t.Errorf("without a budget: %v", k)
	}
}

// TestAccountsAreUsedAgain: what one address had unsent is of no account for the next one, and one that takes its
// response at once costs next to no memory.
func TestAccountsAreUsedAgain(t *testing.T) { //nolint:paralleltest // counts everybody's allocations
	b := unsent.New(unsent.Limits{All: 1000, Address: 100, Connection: 100})
	data := make([]byte, 60)
	for range 3 {
		var held []func()
		for _, address := range []string{"a", "b", "c"} {
			release, err := b.HoldData(t.Context(), address, data)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, release)
			if _, err = b.Hold(t.Context(), address, 41); !fault.Is(err, fault.TooMany) {
				t.Errorf("beyond what %s may have: %v", address, err)
			}
			if release, err = b.Hold(t.Context(), address, 40); err != nil {
				t.Errorf("within what %s may have: %v", address, err)
			}
			held = append(held, release)
		}
		if n := b.Held(); n != 60+3*40 { // they share the data
			t.Errorf("%d bytes are held", n)
		}
		for _, release := range held {
			release()
		}
		if n := b.Held(); n != 0 {
			t.Errorf("%d bytes are held by nobody", n)
		}
	}
	allocations := testing.AllocsPerRun(100, func() {
		release, err := b.HoldData(t.Context(), "a", data)
		if err != nil {
			t.Fatal(err)
		}
		release()
	})
	if allocations > 2 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestLimitsOf machines.
func TestLimitsOf(t *testing.T) {
	t.Parallel()
	for memory, want := range map[uint64]unsent.Limits{
		0:        {All: 32 << 20, Address: 16 << 20, Connection: 6 << 20},
		16 << 30: {All: 2 << 30, Address: 16 << 20, Connection: 6 << 20},
	} {
		if got := unsent.LimitsOf(memory); got != want {
			t.Errorf("%d: %v, want %v", memory, got, want)
		}
	}
}
