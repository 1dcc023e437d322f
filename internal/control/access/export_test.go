package access

import (
	"runtime"
	"testing"
)

// MaxOfToken is how many secrets of one token may wait.
const MaxOfToken = maxOfToken

// MaxSharing is how many may wait for the hash of one secret.
const MaxSharing = maxSharing

// Remembered is how many addresses something is remembered of.
func (s *Service) Remembered() int {
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	return len(s.failures.seen)
}

// HoldLine fills the line of secrets to be hashed until free is called.
func (s *Service) HoldLine(t *testing.T) (free func()) {
	t.Helper()
	s.HoldHashing(t)
	s.hashing.mu.Lock()
	defer s.hashing.mu.Unlock()
	s.hashing.waiting += maxHashing + s.hashing.most
	return func() {
		s.hashing.mu.Lock()
		defer s.hashing.mu.Unlock()
		s.hashing.waiting -= maxHashing + s.hashing.most
		<-s.hashing.slots
	}
}

// LetHash ends HoldHashing.
func (s *Service) LetHash(t *testing.T) {
	t.Helper()
	for range maxHashing {
		<-s.hashing.slots
	}
}

// HoldHashing keeps every secret waiting.
func (s *Service) HoldHashing(t *testing.T) {
	t.Helper()
	for range maxHashing {
		s.hashing.slots <- struct{}{}
	}
}

// HoldHashing keeps every guess at the password waiting until it is let go.
func (s *Sessions) HoldHashing(t *testing.T) (let func()) {
	t.Helper()
	s.hashing.slots <- struct{}{}
	return func() { <-s.hashing.slots }
}

// AwaitLine waits until n guesses wait.
func (s *Sessions) AwaitLine(t *testing.T, n int) {
	t.Helper()
	for {
		s.hashing.mu.Lock()
		waiting := s.hashing.waiting
		s.hashing.mu.Unlock()
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}
