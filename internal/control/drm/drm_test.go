package drm

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		w, h int
		want Class
	}{
		{640, 360, SD},
		{1024, 576, SD},
		{576, 1024, SD},
		{1280, 720, HD},
		{1080, 1920, HD},
		{1920, 1080, HD},
		{1920, 1088, UHD1},
		{1280, 536, SD},
		{1920, 800, HD},
		{2560, 1080, HD},
		{3840, 2160, UHD1},
	} {
		if got := ClassOf(tt.w, tt.h); got != tt.want {
			t.Errorf("%d × %d is %s, want %s", tt.w, tt.h, got, tt.want)
		}
	}
}

func TestKeysOfClasses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  Settings
		want map[Class]Class // of tracks → of their key; "": not encrypted
	}{
		"one key":   {Settings{}, map[Class]Class{Video: Video, SD: Video, HD: Video, UHD1: Video, Audio: ""}},
		"by class":  {Settings{KeysByClass: true}, map[Class]Class{SD: SD, HD: HD, UHD1: UHD1, Audio: ""}},
		"audio too": {Settings{EncryptAudio: true}, map[Class]Class{SD: Video, Audio: Audio}},
		"all of a class": {
			Settings{KeysByClass: true, EncryptAudio: true}, map[Class]Class{SD: SD, HD: HD, UHD1: UHD1, Audio: Audio},
		},
		"the system says": {Settings{ClearKey: true}, map[Class]Class{HD: Video}},
	} {
		var s Stored
		p, due := s.due(0, noon)
		if !due {
			t.Fatal("no keys are due")
		}
		s.add(p, Provided{Keys: newKeys(tt.set, p.Number)})
		c := Configuration{Settings: tt.set}.content(s.StoredKeys)
		ids := map[[16]byte]bool{}
		for _, k := range c.Keys {
			if ids[k.ID] || ids[k.Value] || ids[k.IV] || k.Value == [16]byte{} {
				t.Errorf("%s: %v is not random", name, k)
			}
			ids[k.ID], ids[k.Value], ids[k.IV] = true, true, true
		}
		for class, want := range tt.want {
			got, ok := c.Key(class, c.PeriodAt(noon))
			if ok != (want != "") || got.Class != want {
				t.Errorf("%s: %s has the key of %q, want %q", name, class, got.Class, want)
			}
		}
		if _, due = s.due(0, noon.Add(1000*time.Hour)); due {
			t.Errorf("%s: keys that do not rotate are due again", name)
		}
	}
}

// TestRotation: a segment's key never changes once it may have been delivered, at whatever time it is asked for.
func TestRotation(t *testing.T) {
	t.Parallel()
	const rotation = 10 * time.Minute
	set := Settings{Rotation: rotation}
	var s Stored
	seen := map[time.Time]int{}
	now := noon
	for step := range 400 {
		if p, due := s.due(rotation, now); due {
			if len(s.Periods) > 0 && p.From.Before(now.Add(lead)) {
				t.Fatalf("at %v: period %d begins at %v", now, p.Number, p.From)
			}
			s.add(p, Provided{Keys: newKeys(set, p.Number)})
			s.forget(now)
		}
		c := Configuration{Settings: set}.content(s.StoredKeys)
		for at, period := range seen {
			if now.Sub(at) < 12*time.Hour && c.PeriodAt(at) != period {
				t.Fatalf("at %v the segment of %v is in period %d, and was in %d", now, at, c.PeriodAt(at), period)
			}
		}
		seen[now] = c.PeriodAt(now)
		if _, ok := c.Key(HD, c.PeriodAt(now)); !ok {
			t.Fatalf("at %v there is no key", now)
		}
		if step == 200 {
			now = now.Add(7 * time.Hour) // nobody watches
		}
		now = now.Add(3 * time.Minute)
	}
	c := Configuration{Settings: set}.content(s.StoredKeys)
	if n := len(c.Periods); n < 20 || n > 90 || len(c.Keys) != n {
		t.Errorf("%d periods and %d keys are kept", n, len(c.Keys))
	}
	if last := c.Periods[len(c.Periods)-1]; last.Number < 60 {
		t.Errorf("after %v the last period is %d", now.Sub(noon), last.Number)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Settings{Scheme: CBCS, ClearKey: true}
	if err := good.check("name"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Settings){
		"scheme": func(s *Settings) { s.Scheme = "cbc1" }, "no scheme": func(s *Settings) { s.Scheme = "" },
		"rotation":  func(s *Settings) { s.Rotation = time.Minute },
		"negative":  func(s *Settings) { s.Rotation = -time.Hour },
		"no system": func(s *Settings) { s.ClearKey = false },
	} {
		set := good
		change(&set)
		if err := set.check("name"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
