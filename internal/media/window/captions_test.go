package window

import "testing"

// TestNoCaptions: players are told that there are no closed captions from the first whole segment on, until there are
// some; of what an earlier writer published nobody knows.
func TestNoCaptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		captions map[int]bool // what is said in the middle of the n-th segment: true of text, false of padding
		want     []bool       // behind each segment
	}{
		"none":                    {nil, []bool{true, true, true, true}},
		"from the first on":       {map[int]bool{0: true}, []bool{false, false, false, false}},
		"later":                   {map[int]bool{2: true}, []bool{true, true, false, false}},
		"a channel":               {map[int]bool{0: false}, []bool{true, true, false, false}},
		"a channel and then text": {map[int]bool{0: false, 1: true}, []bool{true, false, false, false}},
		"a channel, later":        {map[int]bool{3: false}, []bool{true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(Options{Mode: low})
			r.start()
			for n, want := range tt.want {
				r.begin("v", false)
				r.begin("a", false)
				r.part("a")
				if text, ok := tt.captions[n]; ok {
					r.Captions("v", text)
				}
				r.part("v")
				if renditions, err := r.Describe(); n > 0 && tt.captions[n] &&
					(err != nil || !renditions[0].NoCaptions) {
					t.Errorf("segment %d is not whole, and %v, %+v", n, err, renditions)
				}
				r.finish(1, "v", "a")
				renditions, err := r.Describe()
				if err != nil || renditions[0].NoCaptions != want || renditions[1].NoCaptions {
					t.Errorf("behind segment %d: %v, %+v", n, err, renditions)
				}
			}
		})
	}
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(2, false)
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := newRig(Options{Mode: low, Timeline: r.store.timeline(t)})
	if renditions, err := again.Describe(); err != nil || renditions[0].NoCaptions {
		t.Errorf("of an earlier writer: %v, %+v", err, renditions)
	}
}
