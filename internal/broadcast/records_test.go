package broadcast

import (
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/health"
)

// TestRecordsAreBounded remembers a thousand encoders that are gone, and forgets none that is connected.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	r := records{all: map[id.LiveStream]*record{}}
	now := time.Now()
	connected := func() time.Time { return now }
	r.begin("stays", live.Encoder{}, false, connected)
	for i := range keepRecords + 9 {
		rec, number := r.begin(id.LiveStream(strconv.Itoa(i)), live.Encoder{}, false, connected)
		rec.end(number, now.Add(time.Duration(i)*time.Second), nil, health.Totals{})
	}
	if len(r.all) != keepRecords || r.of("stays") == nil || r.of("9") != nil || r.of("10") == nil {
		t.Errorf("%d are known", len(r.all))
	}
}

// TestRecordOfAnother lets a publication that has lost its place say nothing any more.
func TestRecordOfAnother(t *testing.T) {
	t.Parallel()
	r := records{all: map[id.LiveStream]*record{}}
	now := time.Now()
	_, old := r.begin("s", live.Encoder{Name: "old"}, false, nil)
	rec, number := r.begin("s", live.Encoder{Name: "new"}, false, func() time.Time { return now })
	rec.end(old, now, nil, health.Totals{})
	rec.take(old, measured{name: "old"})
	if got := rec.show(now); got.Encoder.Name != "new" || !got.Encoder.Until.IsZero() || len(got.Samples) != 0 {
		t.Errorf("shows %+v", got)
	}
	for range live.MaxSamples + 5 {
		rec.take(number, measured{})
	}
	if got := rec.show(now); len(got.Samples) != live.MaxSamples || got.Status != live.HealthLive {
		t.Errorf("%d samples, %s", len(got.Samples), got.Status)
	}
}
