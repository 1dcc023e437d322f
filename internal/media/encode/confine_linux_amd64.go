package encode

import "golang.org/x/sys/unix"

const (
	auditArch        = unix.AUDIT_ARCH_X86_64
	firstForeignCall = 0x40000000 // from here on calls are those of x32
)
