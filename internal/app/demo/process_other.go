//go:build !linux

package demo

import "syscall"

// childAttributes keeps Ctrl-C from reaching the child, which is stopped in its turn.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
