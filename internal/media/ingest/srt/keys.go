package srt

import (
	"crypto/sha256"
	"sync"
)

// rememberedKeys is how many keys are remembered at least, and twice that at most.
const rememberedKeys = 2048

// keys are those that were right lately, as hashes. Callers who have one come before strangers: who shares an address
// with a flood of wrong keys, as behind a NAT, is let in all the same. It is empty when the process starts.
type keys struct {
	mu          sync.Mutex
	young, aged map[[sha256.Size]byte]struct{}
}

// add takes a key that was right.
func (k *keys) add(key string) {
	sum := sha256.Sum256([]byte(key))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.young == nil || len(k.young) >= rememberedKeys {
		k.young, k.aged = map[[sha256.Size]byte]struct{}{}, k.young
	}
	k.young[sum] = struct{}{}
}

// has reports whether a caller's stream ID has such a key.
func (k *keys) has(streamID string) bool {
	id, err := parseStreamID(streamID)
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(id.key))
	k.mu.Lock()
	defer k.mu.Unlock()
	_, young := k.young[sum]
	_, aged := k.aged[sum]
	return young || aged
}
