package doctor

import (
	"fmt"
	"os"
	"runtime"
)

// Load is how many threads of this machine run or want to, on average over the last minute, and how many processors
// there are for them; zero: nobody knows.
type Load func() (threads float64, processors int)

// load is this machine's, as the system tells it.
func load() (threads float64, processors int) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 0
	}
	if _, err = fmt.Sscan(string(data), &threads); err != nil {
		return 0, 0
	}
	return threads, runtime.NumCPU()
}

// late is the finding about something that did not respond in time. On a busy machine that says nothing about it.
func (l Load) late(what string) Finding {
	if l != nil {
		if threads, processors := l(); threads > float64(processors) {
			return warning("Run millrace doctor again when this machine has less to do.",
				"%s could not be checked, as it did not respond in time: this machine is busy (a load of %.1f for "+
					"its processors, of which there are %d)", what, threads, processors)
		}
	}
	return problem("Find out what holds it up, such as a disk that does not respond, and run millrace doctor again.",
		"%s did not respond in time", what)
}
