package app

import (
	"github.com/KimMachineGun/automemlimit/memlimit"

	"millrace/internal/config"
)

// memoryOf is how many bytes of memory this process may have: those of the machine, or of its control group.
func memoryOf() (uint64, error) { return smaller(machineMemory, memlimit.FromCgroup) }

// smaller is the machine's memory or, where it can be read and is less, a group's limit.
func smaller(machine, group func() (uint64, error)) (uint64, error) {
	all, err := machine()
	if err != nil {
		return 0, err
	}
	if limit, err := group(); err == nil && limit > 0 { // else there is none
		all = min(all, limit)
	}
	return all, nil
}

// limitMemory makes the garbage collector run more often before the memory is used up: ffmpeg and the system's cache
// have the rest. Where an operator gives GOMEMLIMIT, whatever its value, the runtime has read it already.
func limitMemory(cfg config.Config, memory uint64, set func(limit int64) int64) {
	if !cfg.Given("gomemlimit") {
		set(int64(min(memory/4*3, 1<<63-1)))
	}
}
