package fault_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"millrace/internal/fault"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	if err := fault.Guard(func() error { return why }); err != why { //nolint:errorlint // it is the same one
		t.Errorf("%v instead of what f returned", err)
	}
	err := fault.Guard(func() error {
		return errors.New(strings.Fields("")[7])
	})
	p, ok := errors.AsType[*fault.PanicError](err)
	if !ok || !bytes.Contains(p.Stack, []byte("TestGuard")) ||
		err.Error() != "panic: runtime error: index out of range [7] with length 0" {
		t.Errorf("%v", err)
	}
}
