package turns

// Left are the free places and bytes, the addresses that are known and those who wait.
func (l *Line) Left() [4]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return [4]int64{int64(l.places), l.bytes, int64(len(l.inside) + len(l.last)), int64(len(l.waiting))}
}
