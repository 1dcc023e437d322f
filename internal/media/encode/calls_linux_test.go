package encode

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestCallFilter asks the filter alone, without what the kernel here refuses besides.
func TestCallFilter(t *testing.T) {
	t.Parallel()
	filter, err := bpf.NewVM(callFilter())
	if err != nil {
		t.Fatal(err)
	}
	const us, all = 4711, 1<<64 - 1
	const allow, refuse, absent = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | int(unix.EPERM),
		unix.SECCOMP_RET_ERRNO | int(unix.ENOSYS)
	for _, tt := range []struct {
		name string
		call uint32
		args [6]uint64
		want int
	}{
		{"reading", unix.SYS_READ, [6]uint64{0, 1, 2}, allow},
		{"a socket", unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, refuse},
		{"killing us", unix.SYS_KILL, [6]uint64{us, uint64(unix.SIGKILL)}, refuse},
		{"killing our thread", unix.SYS_TGKILL, [6]uint64{us, us, uint64(unix.SIGKILL)}, refuse},
		{
			"killing it, with more than the kernel looks at", unix.SYS_TGKILL,
			[6]uint64{us, us, 1<<32 | uint64(unix.SIGKILL)},
			refuse,
		},
		{"stopping our thread", unix.SYS_TGKILL, [6]uint64{us, us, uint64(unix.SIGSTOP)}, refuse},
		{"interrupting a thread", unix.SYS_TGKILL, [6]uint64{us, us, uint64(unix.SIGURG)}, allow},
		{"having us told of a file", unix.SYS_FCNTL, [6]uint64{1, unix.F_SETOWN, us}, refuse},
		{"having a thread of ours told", unix.SYS_FCNTL, [6]uint64{1, unix.F_SETOWN_EX}, refuse},
		{"by which signal", unix.SYS_FCNTL, [6]uint64{1, unix.F_SETSIG, uint64(unix.SIGKILL)}, refuse},
		{"flags of a file", unix.SYS_FCNTL, [6]uint64{1, unix.F_SETFL, unix.O_NONBLOCK}, allow},
		{"our limits", unix.SYS_PRLIMIT64, [6]uint64{us, unix.RLIMIT_CPU}, refuse},
		{"its limits", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_CPU}, allow},
		{
			"its limits, with more than the kernel looks at", unix.SYS_PRLIMIT64,
			[6]uint64{1 << 32, unix.RLIMIT_CPU},
			allow,
		},
		{"our priority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, us, 19}, refuse},
		{"its priority", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_PROCESS, 0, 19}, allow},
		{"that of a user", unix.SYS_SETPRIORITY, [6]uint64{unix.PRIO_USER, 0, 19}, refuse},
		{"our turn at the disk", unix.SYS_IOPRIO_SET, [6]uint64{1, us}, refuse},
		{"our class", unix.SYS_SCHED_SETSCHEDULER, [6]uint64{us, unix.SCHED_IDLE}, refuse},
		{"its class", unix.SYS_SCHED_SETSCHEDULER, [6]uint64{0, unix.SCHED_IDLE}, allow},
		{"our parameters", unix.SYS_SCHED_SETPARAM, [6]uint64{us}, refuse},
		{"our attributes", unix.SYS_SCHED_SETATTR, [6]uint64{us}, refuse},
		{"our processors", unix.SYS_SCHED_SETAFFINITY, [6]uint64{us}, refuse},
		{"its processors", unix.SYS_SCHED_SETAFFINITY, [6]uint64{0}, allow},
		{"our pages", unix.SYS_MIGRATE_PAGES, [6]uint64{us}, refuse},
		{"a thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"a user's namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, refuse},
		{"the newer call", unix.SYS_CLONE3, [6]uint64{}, absent},
		{"a call of another architecture", firstForeignCall, [6]uint64{}, absent},
		{"everything set", unix.SYS_SCHED_SETATTR, [6]uint64{all, all, all, all, all, all}, refuse},
	} {
		data := make([]byte, argumentsAt+registerSize*len(tt.args))
		binary.BigEndian.PutUint32(data[callAt:], tt.call) // as a packet filter reads numbers
		binary.BigEndian.PutUint32(data[archAt:], auditArch)
		for i, a := range tt.args {
			binary.BigEndian.PutUint32(data[argumentsAt+registerSize*i:], uint32(a))
			binary.BigEndian.PutUint32(data[argumentsAt+registerSize*i+wordSize:], uint32(a>>32))
		}
		if got, err := filter.Run(data); err != nil || got != tt.want {
			t.Errorf("%s: %#x, %v, want %#x", tt.name, got, err, tt.want)
		}
	}
}
