package delivery

// Bound sets how many deliveries of one endpoint, and of all, may be in memory.
func (d *Dispatcher) Bound(one, all int) { d.memory = memory{one, all} }

// Waiting is how many deliveries are in memory. Nothing else may run.
func (d *Dispatcher) Waiting() (n int) {
	for _, e := range d.endpoints {
		n += e.waiting
	}
	return n
}
