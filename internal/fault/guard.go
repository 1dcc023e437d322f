package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that Guard has stopped.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine, as runtime/debug.Stack gives it
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Guard calls f and turns a panic into a *PanicError: what one peer or file causes ends nothing but what serves it.
func Guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{r, debug.Stack()}
		}
	}()
	return f()
}

// Trace is the stack of the panic that an error comes from, on lines of its own; empty where it comes from none.
func Trace(err error) string {
	if p, ok := errors.AsType[*PanicError](err); ok {
		return "\n" + string(p.Stack)
	}
	return ""
}
