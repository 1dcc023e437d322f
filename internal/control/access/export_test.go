package access

import "testing"

// MaxOfToken is how many secrets of one token may wait.
const MaxOfToken = maxOfToken

// HoldLine fills the line of secrets to be hashed until free is called.
func (s *Service) HoldLine(t *testing.T) (free func()) {
	t.Helper()
	s.HoldTurn(t)
	s.hashing.mu.Lock()
	defer s.hashing.mu.Unlock()
	s.hashing.waiting += maxHashing + maxWaiting
	return func() {
		s.hashing.mu.Lock()
		defer s.hashing.mu.Unlock()
		s.hashing.waiting -= maxHashing + maxWaiting
		<-s.hashing.turn
	}
}

// HoldTurn keeps every secret waiting.
func (s *Service) HoldTurn(t *testing.T) {
	t.Helper()
	for range maxHashing {
		s.hashing.turn <- struct{}{}
	}
}
