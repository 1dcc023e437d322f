package journal

// Do does the next n operations, as Run would, and no more.
func (j *Journal) Do(n int) {
	for range n {
		batch, _ := j.dequeue()
		if len(batch) == 0 {
			return
		}
		j.do(&batch[0])
	}
}
