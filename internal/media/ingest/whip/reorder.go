package whip

import (
	"time"

	"github.com/pion/rtp"
)

const (
	reorderSlots = 2048 // packets: a second of video at 20 Mbit/s
	reorderFull  = reorderSlots * 3 / 4
	reorderBytes = 4 << 20 // of what waits behind a hole
	reorderStale = 256     // packets in a row that are too old: the sender counts again
	staleTime    = time.Second
	staleLeast   = 8 // packets in a row for so long tell the same: few come from a sender that has little to send with
)

// waiting is a packet and when it came.
type waiting struct {
	packet *rtp.Packet
	at     time.Time
}

// reorder puts packets into the order of their sequence numbers and waits for those that are missing, which are asked
// for again: at most for a time, for a number of packets and for a number of bytes.
type reorder struct {
	patience time.Duration // from the arrival of the first packet behind a hole

	slots   [reorderSlots]waiting
	started bool
	next    int64 // sequence number, unwrapped, that is due
	newest  int64
	count   int // packets that wait
	bytes   int
	stale   int       // packets in a row that came too late
	since   time.Time // when the first of them came
	odd     int       // sequence number that would confirm one far ahead; -1: none

	packets      int // that came
	missed, mend int // packets that were not there when later ones were, and those of them that came in time
	lost, late   int // packets that never came, and that came when they were given up, or once more
}

// push takes a packet that came at now.
func (r *reorder) push(p *rtp.Packet, now time.Time) {
	r.packets++
	seq := int64(p.SequenceNumber)
	if !r.started {
		r.started, r.next, r.newest, r.odd = true, seq, seq, -1
	} else {
		seq = r.newest + int64(int16(p.SequenceNumber-uint16(r.newest)))
	}
	if seq < r.next {
		r.late++
		if r.stale++; r.stale == 1 {
			r.since = now
		}
		if r.stale < reorderStale && (r.stale < staleLeast || now.Sub(r.since) < staleTime) {
			return
		}
		seq = int64(p.SequenceNumber)
		for seq <= r.newest+reorderSlots { // ahead by enough for everybody to see a hole
			seq += 1 << 16
		}
		r.jump(seq, 0)
	}
	r.stale = 0
	if seq >= r.next+reorderSlots {
		// So much is missing that nothing is worth waiting for, or the number is wrong: the next packet tells, RFC 3550
		// appendix A.1.
		confirmed := r.odd == int(p.SequenceNumber)
		r.odd = int(p.SequenceNumber + 1)
		if !confirmed {
			return
		}
		r.jump(seq, int(seq-r.next)-r.count)
	}
	r.odd = -1
	slot := &r.slots[seq%reorderSlots]
	if slot.packet != nil {
		return // twice
	}
	*slot = waiting{p, now}
	if seq > r.newest {
		r.missed += int(seq - r.newest - 1)
		r.newest = seq
	} else if seq < r.newest {
		r.mend++
	}
	r.count++
	r.bytes += len(p.Payload)
}

// jump gives up everything before seq, also what waits. What is due is the one before, so that seq comes out behind a
// hole.
func (r *reorder) jump(seq int64, lost int) {
	clear(r.slots[:])
	r.lost += lost - 1
	r.count, r.bytes = 0, 0
	r.next, r.newest = seq-1, seq-1
}

// pop gives the next packet and when it came, and whether packets before it are lost; a nil packet when there is none
// yet.
func (r *reorder) pop(now time.Time) (w waiting, hole bool) {
	if r.count == 0 {
		return waiting{}, false
	}
	first := r.next
	for r.slots[first%reorderSlots].packet == nil {
		first++
	}
	slot := &r.slots[first%reorderSlots]
	if hole = first > r.next; hole && now.Sub(slot.at) < r.patience && r.bytes <= reorderBytes &&
		r.newest-r.next < reorderFull {
		return waiting{}, false
	}
	w, *slot = *slot, waiting{}
	r.lost += int(first - r.next)
	r.next = first + 1
	r.count--
	r.bytes -= len(w.packet.Payload)
	return w, hole
}
