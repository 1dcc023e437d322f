package doctor

import "golang.org/x/sys/unix"

// fileSystem names a file system that loses or corrupts what a service keeps; empty for a good or unknown one.
func fileSystem(path string) string {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return ""
	}
	switch uint32(s.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "a file system in memory: everything is gone after a restart of the machine"
	case unix.NFS_SUPER_MAGIC:
		return "NFS, where SQLite's locks are not safe"
	case unix.SMB_SUPER_MAGIC, 0xff534d42, 0xfe534d42: // CIFS, SMB2
		return "a Windows share, where SQLite's locks are not safe"
	}
	return ""
}

// clockSynchronised asks the kernel whether something keeps its clock right.
func clockSynchronised() (yes, known bool) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t) // modes 0 only reads
	if err != nil {
		return false, false
	}
	return state != unix.TIME_ERROR, true
}
