package receive

import (
	"fmt"
	"testing"

	"millrace/internal/id"
)

// TestRememberedIsBounded: of more uploads, or larger ones, than may be remembered the oldest are forgotten.
func TestRememberedIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		blocks, puts, kept int
	}{
		"many":     {1, 2 * maxRemembered, maxRemembered},
		"large":    {maxRememberedBlocks / 4, 8, 4},
		"one each": {maxRememberedBlocks, 3, 1},
		"too much": {maxRememberedBlocks + 1, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r remembered
			c := &checksums{blocks: make([]uint32, tt.blocks), size: int64(tt.blocks) * blockBytes, known: true}
			name := func(i int) id.Upload { return id.Upload(fmt.Sprint(i)) }
			for i := range tt.puts {
				r.put(name(i), c)
				r.put(name(i), c) // in place of itself
			}
			if len(r.of) != tt.kept || len(r.order) != tt.kept || r.blocks != tt.kept*tt.blocks {
				t.Fatalf("%d uploads, %d in the order, %d blocks; want %d", len(r.of), len(r.order), r.blocks, tt.kept)
			}
			for i := range tt.puts {
				got := r.take(name(i), c.size)
				if kept := i >= tt.puts-tt.kept; (got == c) != kept || got.size != c.size ||
					len(got.blocks) != tt.blocks {
					t.Fatalf("upload %d of %d: %v", i, tt.puts, got == c)
				}
			}
			if len(r.of) != 0 || len(r.order) != 0 || r.blocks != 0 {
				t.Errorf("%d uploads, %d in the order, %d blocks are left", len(r.of), len(r.order), r.blocks)
			}
		})
	}
}

// TestRememberedOfAnother: what is remembered of less than has come is not of that file any more.
func TestRememberedOfAnother(t *testing.T) {
	t.Parallel()
	var r remembered
	c := checksumsFrom(0)
	c.add(make([]byte, blockBytes+5))
	r.put("u", c)
	got := r.take("u", 2*blockBytes+7)
	if got.size != 2*blockBytes+7 || got.known || len(got.blocks) != 2 || got.blocks[0] != 0 || got.blocks[1] != 0 {
		t.Errorf("%+v", got)
	}
	got.add(make([]byte, blockBytes-7)) // the block is not known, the next one is
	got.add(make([]byte, blockBytes))
	if got.blocks[2] != 0 || got.blocks[3] == 0 || len(got.bytes()) != 4*sumBytes {
		t.Errorf("%+v", got)
	}
}
