package encode

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A thread gives up rights and starts the child, which inherits what is left. The thread ends with f: nothing else ever
// runs on it. A program of our own between the two would do the same and take as long to start as a fifth of ffmpeg
// does (decision 30).
func onOwnThread(f func()) {
	runtime.LockOSThread() // and never unlock it
	f()
}

// confine takes rights away from the calling thread: as many as the kernel offers to.
func confine(rules []rule) error {
	can := Confined()
	if !can.NewRight { // without it the others can't be had
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine child: set no_new_privs: %w", err)
	}
	if can.Files {
		if err := restrictFiles(rules); err != nil {
			return fmt.Errorf("confine child: %w", err)
		}
	}
	if can.Calls {
		if err := filterCalls(); err != nil {
			return fmt.Errorf("confine child: %w", err)
		}
	}
	return nil
}

// Confined is what children can't do on this system.
func Confined() Confinement { return confined() }

//nolint:gochecknoglobals // the kernel does not change while we run
var confined = sync.OnceValue(func() Confinement {
	// The runtime tries out, once, how it can wait for children: not on a thread that may do less than others.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	_, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	mode, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0)
	calls := auditArch != 0 && errno == 0 && mode != unix.SECCOMP_MODE_STRICT && seccompOffered()
	return Confinement{NewRight: err == nil, Files: landlockABI() >= 1, Calls: calls}
})

// seccompOffered reports whether the kernel filters calls.
func seccompOffered() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))) //nolint:gosec // as the call wants it
	return errno == 0
}

// Versions of Landlock's interface that add rights (man 7 landlock).
const (
	abiRefer    = 2
	abiTruncate = 3
	abiNetwork  = 4
	abiScopes   = 6
)

// landlockABI is the version of Landlock's interface; 0: there is none, or it is switched off.
func landlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

const (
	readRights  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	runRights   = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writeRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	fileRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	firstRights = 1<<13 - 1 // those of the first version
)

// restrictFiles lets the calling thread, and what it starts, do with files what the rules say and nothing else; with
// Landlock of later versions nor anything with TCP, abstract sockets and processes outside.
func restrictFiles(rules []rule) error {
	abi := landlockABI()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: firstRights}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= abiRefer {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= abiTruncate {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= abiNetwork {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Handled_access_net)
	}
	if abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(attr.Scoped)
	}
	set, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // as the call wants it
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer func() { _ = unix.Close(int(set)) }()
	for _, r := range rules {
		if err := allow(int(set), r, attr.Handled_access_fs); err != nil {
			return fmt.Errorf("allow %s: %w", r.path, err)
		}
	}
	if _, _, errno = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

// allow adds a rule. What is not there needs none.
func allow(set int, r rule, handled uint64) error {
	var rights uint64
	switch r.right {
	case toRead:
		rights = readRights
	case toRun:
		rights = runRights
	case toWrite:
		rights = writeRights | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	case toUse:
		rights = readRights | writeRights
	}
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & handled, Parent_fd: int32(fd)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // as the call wants it
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}
