package app

import "testing"

// TestShares leaves half of the descriptors of a small process to what is not a connection.
func TestShares(t *testing.T) {
	t.Parallel()
	const memory = 16 << 30
	for name, tt := range map[string]struct {
		descriptors, memory         uint64
		viewers, publishers, webrtc int
	}{
		"small":          {512, memory, 188, 51, 17},
		"usual":          {1024, memory, 376, 102, 34},
		"a unit's":       {65536, memory, 65536 - 8192 - 2048 - 2048, 2048, 2048},
		"without limit":  {1 << 62, memory, 131072, 2048, 2048},
		"little memory":  {65536, 512 << 20, 4096, 2048, 2048},
		"next to none":   {40, memory, 15, 4, 1},
		"and no memory":  {65536, 0, 64, 2048, 2048},
		"not even those": {0, memory, 0, 0, 0},
	} {
		v, p, w := shares(tt.descriptors, tt.memory)
		if v != tt.viewers || p != tt.publishers || w != tt.webrtc {
			t.Errorf("%s: %d viewers, %d publishers, %d over WebRTC", name, v, p, w)
		}
		if used := uint64(v + p + w); used > tt.descriptors-min(tt.descriptors/2, mostReserved) {
			t.Errorf("%s: %d of %d", name, used, tt.descriptors)
		}
	}
}
