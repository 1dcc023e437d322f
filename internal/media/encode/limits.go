package encode

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what a child may use; zero fields are not limited.
type Limits struct {
	AddressSpace uint64        // bytes
	CPU          time.Duration // of all its threads, rounded up to seconds; then it gets SIGXCPU, 5 s later SIGKILL
	Wall         time.Duration // on the clock, from its start; then it is killed, and the error is ErrLate
	FileSize     uint64        // bytes of any one file it writes
}

// DefaultLimits fit a job on a hostile file.
func DefaultLimits() Limits {
	return Limits{AddressSpace: 2 << 30, CPU: 2 * time.Hour, FileSize: 64 << 30}
}

// maxOpenFiles of a child: its libraries, its files and pipes.
const maxOpenFiles = 256

// apply sets the limits of pid. A child that has ended meanwhile is no error.
func (l Limits) apply(pid int) error {
	cpu := uint64(l.seconds())
	for _, r := range []struct {
		name       string
		resource   int
		soft, hard uint64
	}{
		{"address space", unix.RLIMIT_AS, l.AddressSpace, l.AddressSpace},
		{"processor time", unix.RLIMIT_CPU, cpu, cpu + 5},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize, l.FileSize},
		{"open files", unix.RLIMIT_NOFILE, maxOpenFiles, maxOpenFiles},
	} {
		if r.soft == 0 {
			continue
		}
		err := unix.Prlimit(pid, r.resource, &unix.Rlimit{Cur: r.soft, Max: r.hard}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("limit %s of child: %w", r.name, err)
		}
	}
	// No core files: they would hold what was being decoded.
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limit core of child: %w", err)
	}
	return nil
}

// seconds are the whole ones of processor time that a child has; 0: there is no limit.
func (l Limits) seconds() int64 { return int64(max(0, (l.CPU+time.Second-1)/time.Second)) }

// spent reports whether a child has ended by a limit of its processor time. One that catches SIGXCPU ends as it likes,
// ffmpeg with an exit status. The system counts for the limit in another way than for who asks afterwards, and the two
// differ a little.
func (l Limits) spent(ended *os.ProcessState) bool {
	if l.seconds() == 0 {
		return false
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGXCPU {
		return true
	}
	allowed := time.Duration(l.seconds()) * time.Second
	return ended.UserTime()+ended.SystemTime() >= allowed*2/3
}
