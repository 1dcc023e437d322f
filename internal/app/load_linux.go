package app

import "golang.org/x/sys/unix"

// machineLoad is how many processes of the machine run or wait to, on average over a minute; 0 where nobody tells.
func machineLoad() float64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return float64(i.Loads[0]) / (1 << unix.SI_LOAD_SHIFT)
}
