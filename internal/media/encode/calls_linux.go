package encode

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refusedCalls are those that a decoder has no use for and that lead out of its confinement: to a network, to other
// processes, to the system. io_uring does what a filter would not let through.
//
//nolint:gochecknoglobals // a table
var refusedCalls = []uint32{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT,
	unix.SYS_ACCEPT4,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_REQUEST_KEY,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
	unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME,
}

// sharedCalls are those that a decoder needs, or its program does, and that reach another process with some arguments.
// These are compared with the lower half of the register: the kernel takes an int, or flags that are all in there.
//
//nolint:gochecknoglobals // a table
var sharedCalls = []struct {
	call     uint32
	argument uint32
	refused  bpf.JumpTest // of the argument with value
	value    uint32
}{
	// Go's runtime interrupts its own threads by SIGURG, which nobody dies of. abort() ends a process without a signal
	// too.
	{unix.SYS_TGKILL, 2, bpf.JumpNotEqual, uint32(unix.SIGURG)},
	// The process that is told when a file is ready, and by which signal: any of our user's, by SIGKILL.
	{unix.SYS_FCNTL, 1, bpf.JumpEqual, unix.F_SETOWN},
	{unix.SYS_FCNTL, 1, bpf.JumpEqual, unix.F_SETOWN_EX},
	{unix.SYS_FCNTL, 1, bpf.JumpEqual, unix.F_SETSIG},
	// 0 is the caller. It asks for its own limits, and chooses its own priority and processors.
	{unix.SYS_PRLIMIT64, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_SETPRIORITY, 0, bpf.JumpNotEqual, unix.PRIO_PROCESS},
	{unix.SYS_SETPRIORITY, 1, bpf.JumpNotEqual, 0},
	{unix.SYS_IOPRIO_SET, 0, bpf.JumpNotEqual, ioprioProcess},
	{unix.SYS_IOPRIO_SET, 1, bpf.JumpNotEqual, 0},
	{unix.SYS_SCHED_SETSCHEDULER, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_SCHED_SETPARAM, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_SCHED_SETATTR, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_SCHED_SETAFFINITY, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_MIGRATE_PAGES, 0, bpf.JumpNotEqual, 0},
	{unix.SYS_MOVE_PAGES, 0, bpf.JumpNotEqual, 0},
	// A namespace of its own would make it root there.
	{unix.SYS_CLONE, 0, bpf.JumpBitsSet, newNamespaces},
}

const (
	ioprioProcess = 1 // IOPRIO_WHO_PROCESS
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// Where struct seccomp_data has what is looked at, on machines that store the lower half of a word first.
const callAt, archAt, argumentsAt, wordSize, registerSize = 0, 4, 16, 4, 8

// callFilter refuses calls, and all of another architecture: its numbers mean others.
func callFilter() []bpf.Instruction {
	refuse := func(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | errno} }
	load := func(at uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: at, Size: wordSize} }
	program := []bpf.Instruction{
		load(archAt),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse(uint32(unix.ENOSYS)),
		load(callAt),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstForeignCall, SkipTrue: 1},
		refuse(uint32(unix.ENOSYS)),
		// Its flags are in memory, which a filter does not see. Whoever is told that it is not there takes clone.
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		refuse(uint32(unix.ENOSYS)),
	}
	for _, call := range refusedCalls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1},
			refuse(uint32(unix.EPERM)))
	}
	for _, s := range sharedCalls {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: s.call, SkipTrue: 4},
			load(argumentsAt+registerSize*s.argument),
			bpf.JumpIf{Cond: s.refused, Val: s.value, SkipFalse: 1},
			refuse(uint32(unix.EPERM)),
			load(callAt))
	}
	return append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

//nolint:gochecknoglobals // made once
var assembledFilter = sync.OnceValues(func() ([]bpf.RawInstruction, error) { return bpf.Assemble(callFilter()) })

// filterCalls lets the calling thread, and what it starts, make fewer calls.
func filterCalls() error {
	raw, err := assembledFilter()
	if err != nil {
		return fmt.Errorf("make filter of calls: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))) //nolint:gosec // as the call wants it
	runtime.KeepAlive(filter)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
