package hlscheck

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// TestPartBytes: parts that were fetched are the segment. Behind the end of a stream, whose playlist lists no parts,
// the last one was never listed.
func TestPartBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listed  int
		fetched []string
		ok      bool
	}{
		"all":                     {2, []string{"ab", "cd"}, true},
		"another":                 {2, []string{"ab", "cx"}, false},
		"listed, but not all":     {2, []string{"ab", "c"}, false},
		"not fetched":             {2, []string{"ab"}, true},
		"no longer listed":        {0, []string{"ab", "cd"}, true},
		"the last was not listed": {0, []string{"ab"}, true},
		"another, not listed":     {0, []string{"ax"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &checker{checked: map[string]int{}, seen: map[string]int{}, last: map[string]int{}}
			v := &rendition{c: c, parts: map[partKey]*partSeen{}}
			for i, data := range tt.fetched {
				v.parts[partKey{7, i}] = &partSeen{data: []byte(data)}
			}
			v.checkPartBytes("https://x.example/v/7.m4s", entry{msn: 7, parts: make([]partTag, tt.listed)},
				[]byte("abcd"))
			if ok := len(c.findings) == 0; ok != tt.ok {
				t.Errorf("findings %v", c.findings)
			}
		})
	}
}

// TestDatedOverAHole: what is left of a hole in front of a picture belongs to its segment, which is dated where the one
// before ends; sound that has no hole is not. Without a hole as long as that they are dated apart.
func TestDatedOverAHole(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		hole, date time.Duration
		good       bool
	}{
		"no hole":             {0, 0, true},
		"a hole":              {-240 * time.Millisecond, -240 * time.Millisecond, true},
		"a shorter hole":      {-100 * time.Millisecond, -240 * time.Millisecond, false},
		"a date behind it":    {-240 * time.Millisecond, 240 * time.Millisecond, false},
		"a date without hole": {0, -240 * time.Millisecond, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			findings := across(beginning(90000, tt.hole, 0, tt.date), beginning(48000, 0, 0, 0))
			if good := len(findings) == 0; good != tt.good {
				t.Errorf("findings: %v", findings)
			}
		})
	}
}

// TestSoundOverAHole: what is left of a hole in front of a frame of sound is put behind it, so that it is heard early.
// Its segment begins and is dated early by as much, and by no more.
func TestSoundOverAHole(t *testing.T) {
	t.Parallel()
	const hole = 9600 // ticks of 48 kHz, 200 ms
	for what, tt := range map[string]struct {
		behind []uint32 // ticks behind each frame
		early  time.Duration
		good   bool
	}{
		"no hole":              {[]uint32{0, 0, 0}, 0, true},
		"early without hole":   {[]uint32{0, 0, 0}, 200 * time.Millisecond, false},
		"a hole":               {[]uint32{hole, 0, 0}, 200 * time.Millisecond, true},
		"a shorter hole":       {[]uint32{hole / 2, 0, 0}, 200 * time.Millisecond, false},
		"a hole of two parts":  {[]uint32{hole / 2, hole / 2, 0}, 200 * time.Millisecond, true},
		"the next frame's":     {[]uint32{0, hole, 0}, 200 * time.Millisecond, false},
		"all frames are long":  {[]uint32{hole, hole, hole}, 200 * time.Millisecond, false},
		"in time":              {[]uint32{hole, 0, 0}, 0, true},
		"late in spite of one": {[]uint32{hole, 0, 0}, -200 * time.Millisecond, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sound := beginning(48000, -tt.early, -tt.early, -tt.early)
			list, _, err := parseFragments(moofs(uint32(sound.start), tt.behind[:1], tt.behind[1:]), sound.init.info)
			if err != nil || len(list) != 2 {
				t.Fatal(list, err)
			}
			sound.measure(list, "audio")
			findings := across(beginning(90000, 0, 0, 0), sound)
			if good := len(findings) == 0; good != tt.good {
				t.Errorf("findings: %v", findings)
			}
		})
	}
}

// across holds two segments of one number against each other.
func across(lead, v *segmentSeen) []Finding {
	c := &checker{checked: map[string]int{}, seen: map[string]int{}, last: map[string]int{}}
	of := func(s *segmentSeen) *rendition { return &rendition{c: c, segments: map[int]*segmentSeen{0: s}} }
	c.checkPair(of(lead), of(v))
	return c.findings
}

// beginning is a segment whose first frame is decoded, presented and dated so long behind one moment.
func beginning(scale uint32, decoded, presented, dated time.Duration) *segmentSeen {
	return &segmentSeen{
		entry: entry{pdt: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).Add(dated)},
		init:  &initSeen{info: &initInfo{timescale: scale}},
		start: uint64((10*time.Second + decoded).Seconds() * float64(scale)),
		pts:   (10*time.Second + presented).Seconds(), fragment: true,
	}
}

// moofs gives one moof for each list of AAC frames, each with so many ticks behind it, beginning at start.
func moofs(start uint32, lists ...[]uint32) (out []byte) {
	box := func(kind string, body []byte) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), kind...), body...)
	}
	words := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		return b
	}
	for _, behind := range lists {
		tfdt, run := words(0, start), words(0x100, uint32(len(behind))) // each sample has a duration
		for _, ticks := range behind {
			start += 1024 + ticks
			run = append(run, words(1024+ticks)...)
		}
		traf := slices.Concat(box("tfhd", words(0, 1)), box("tfdt", tfdt), box("trun", run))
		out = append(out, box("moof", box("traf", traf))...)
	}
	return out
}
