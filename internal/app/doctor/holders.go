package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// Holder is who has a port.
type Holder struct {
	User     uint64
	PID      int    // 0: this user may not know
	Program  string // its name
	Millrace bool   // it is this very program
}

// holders finds who listens on a port, by the lists of sockets and of open files that Linux keeps; elsewhere it finds
// nobody. Which process a socket is of, only its user and root may know.
func holders(port string, udp bool) []Holder {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	found := map[string]Holder{} // by what a descriptor of the socket leads to
	if udp {
		four, _ := fs.NetUDP() // what can't be read names nobody
		six, _ := fs.NetUDP6()
		for _, s := range slices.Concat(four, six) {
			if s.LocalPort == number {
				found[socketName(s.Inode)] = Holder{User: s.UID}
			}
		}
	} else {
		const listening = 10
		four, _ := fs.NetTCP() //nolint:staticcheck // slow for busy machines, and read once here: no reason for a module for netlink
		six, _ := fs.NetTCP6() //nolint:staticcheck // likewise
		for _, s := range slices.Concat(four, six) {
			if s.LocalPort == number && s.St == listening {
				found[socketName(s.Inode)] = Holder{User: s.UID}
			}
		}
	}
	return withProcesses(fs, found)
}

func socketName(inode uint64) string { return "socket:[" + strconv.FormatUint(inode, 10) + "]" }

// withProcesses adds the processes that have the sockets open.
func withProcesses(fs procfs.FS, found map[string]Holder) (all []Holder) {
	processes, _ := fs.AllProcs()
	for _, p := range processes {
		if len(found) == 0 {
			break
		}
		targets, _ := p.FileDescriptorTargets()
		for _, target := range targets {
			h, is := found[target]
			if !is {
				continue
			}
			delete(found, target)
			h.PID = p.PID
			h.Program, _ = p.Comm()
			exe, _ := p.Executable()
			h.Millrace = isMillrace(exe)
			all = append(all, h)
		}
	}
	for _, h := range found {
		all = append(all, h)
	}
	return all
}

// isMillrace reports whether a program's file has the name of this one's: it may be an older one that was replaced,
// which Linux marks.
func isMillrace(exe string) bool {
	self, err := os.Executable()
	if err != nil || exe == "" {
		return false
	}
	name := filepath.Base(self)
	return filepath.Base(exe) == name || filepath.Base(exe) == name+" (deleted)"
}

func sameUser(a, b []Holder) bool {
	return len(a) > 0 && len(b) > 0 && a[0].User == b[0].User
}
