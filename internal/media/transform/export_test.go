package transform

// Held is how many bytes wait for the encoder.
func (t *Transform) Held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
