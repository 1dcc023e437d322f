package encode

import "golang.org/x/sys/unix"

const (
	auditArch        = unix.AUDIT_ARCH_AARCH64
	firstForeignCall = 1 << 31 // there are none
)
