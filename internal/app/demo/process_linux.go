package demo

import "syscall"

// childAttributes keeps Ctrl-C from reaching the child, which is stopped in its turn, and has the kernel end it if this
// program is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
