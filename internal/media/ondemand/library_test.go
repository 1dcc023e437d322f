package ondemand

import (
	"slices"
	"testing"

	"millrace/internal/media/container/cmaf"
)

// The samples around one without bytes take its time, and each is shown when it was.
func TestWithBytes(t *testing.T) {
	t.Parallel()
	none, some := func(long uint32) cmaf.Sample { return cmaf.Sample{Duration: long} },
		func(long uint32, offset int32) cmaf.Sample {
			return cmaf.Sample{Duration: long, CompositionOffset: offset, Size: 9}
		}
	for name, tt := range map[string]struct{ have, want []cmaf.Sample }{
		"none is empty": {[]cmaf.Sample{some(1, 2), some(3, 4)}, []cmaf.Sample{some(1, 2), some(3, 4)}},
		"behind":        {[]cmaf.Sample{some(1, 2), none(5), none(6)}, []cmaf.Sample{some(12, 2)}},
		"between":       {[]cmaf.Sample{some(1, 2), none(5), some(3, 4)}, []cmaf.Sample{some(6, 2), some(3, 4)}},
		"in front":      {[]cmaf.Sample{none(5), none(1), some(3, 4)}, []cmaf.Sample{some(9, 10)}},
		"all":           {[]cmaf.Sample{none(5)}, []cmaf.Sample{none(5)}},
	} {
		same := func(a, b cmaf.Sample) bool {
			return a.Duration == b.Duration && a.CompositionOffset == b.CompositionOffset && a.Size == b.Size
		}
		if got := withBytes(tt.have); !slices.EqualFunc(got, tt.want, same) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
