package hlscheck

import (
	"slices"
	"strings"
)

// checkMaster applies the rules of the multivariant playlist that need nothing but its text.
func (c *checker) checkMaster(m *multivariant) {
	u := c.o.URL
	for i, v := range m.variants {
		c.check("bandwidth", v.bandwidth > 0, u, "BANDWIDTH=%d of %s", v.bandwidth, v.uri)
		c.check("average-bandwidth", v.average > 0 && v.average <= v.bandwidth || v.average < 0 && i > 0, u,
			"AVERAGE-BANDWIDTH=%d, BANDWIDTH=%d of %s", v.average, v.bandwidth, v.uri)
		if strings.Contains(v.codecs, "avc") || strings.Contains(v.codecs, "hvc") {
			c.check("resolution", v.resolution != "", u, "no RESOLUTION of %s", v.uri)
			c.check("frame-rate", v.frameRate > 0, u, "no FRAME-RATE of %s", v.uri)
		}
		for kind, group := range map[string]string{"AUDIO": v.audio, "SUBTITLES": v.subtitles} {
			named := slices.ContainsFunc(m.media, func(t mediaTag) bool { return t.kind == kind && t.group == group })
			c.check("groups", group == "" || named, u, "%s names the group %s=%q, which is not there", v.uri, kind,
				group)
		}
	}
	c.checkGroups(m)
}

func (c *checker) checkGroups(m *multivariant) {
	u := c.o.URL
	names, defaults, members := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, t := range m.media {
		key := t.kind + " " + t.group
		members[key]++
		c.check("groups", !names[key+" "+t.name], u, "group %s has NAME %q twice", key, t.name)
		names[key+" "+t.name] = true
		c.check("groups", !t.isDefault || t.autoselect, u, "%q in group %s is DEFAULT but not AUTOSELECT", t.name, key)
		if t.isDefault {
			defaults[key]++
		}
		c.check("attribute-required", t.kind != "SUBTITLES" || t.uri != "", u, "subtitles %q have no URI", t.name)
		used := slices.ContainsFunc(m.variants, func(v variant) bool {
			return t.kind == "AUDIO" && v.audio == t.group || t.kind == "SUBTITLES" && v.subtitles == t.group
		})
		c.check("groups", used || t.kind == "CLOSED-CAPTIONS", u, "no variant uses the group %s", key)
	}
	for key, n := range defaults {
		c.check("groups", n <= 1, u, "group %s has %d defaults", key, n)
	}
	for _, t := range m.media {
		if t.kind == "SUBTITLES" || members[t.kind+" "+t.group] > 1 && !t.isDefault {
			c.check("language", t.language != "", u, "%s %q has no LANGUAGE", t.kind, t.name)
		}
	}
}
