package rig

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Children are the server's child processes: their command lines by their IDs.
func (s *Server) Children(t testing.TB) map[int]string {
	t.Helper()
	found := map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(s.cmd.Process.Pid) || fields[0] == "Z" {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && bad == nil {
			found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// Peak is the most memory that the server's process has had, in bytes.
func (s *Server) Peak(t testing.TB) int64 {
	t.Helper()
	return s.memory(t, "VmHWM:")
}

// Resident is how much memory the server's process has now, in bytes.
func (s *Server) Resident(t testing.TB) int64 {
	t.Helper()
	return s.memory(t, "VmRSS:")
}

// memory is what the system says of the process under a name.
func (s *Server) memory(t testing.TB, name string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the system does not say how much memory the server has had")
	return 0
}
