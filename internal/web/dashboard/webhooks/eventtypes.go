package webhooks

import (
	"slices"
	"strings"
)

// typeGroup is types of events that belong together.
type typeGroup struct {
	Name  string
	Types []eventType
}

// eventType is one that a form offers.
type eventType struct {
	Name   string
	Ticked bool
}

// eventGroups are the names of groups by how their types begin; the first one that fits counts.
var eventGroups = []struct{ begins, name string }{ //nolint:gochecknoglobals // a table
	{"video.live_stream.simulcast_target.", "Simulcast targets"},
	{"video.live_stream.", "Live streams"},
	{"video.asset.track.", "Tracks"},
	{"video.asset.static_rendition", "Files to download"},
	{"video.asset.master.", "Masters"},
	{"video.asset.", "Assets"},
	{"video.upload.", "Uploads"},
	{"system.webhook.", "Webhooks"},
	{"", "Others"},
}

// grouped has types in their groups, those of them ticked that are chosen.
func grouped(types, chosen []string) []typeGroup {
	var all []typeGroup
	for _, t := range types {
		name := groupOf(t)
		i := slices.IndexFunc(all, func(g typeGroup) bool { return g.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, typeGroup{Name: name})
		}
		all[i].Types = append(all[i].Types, eventType{t, slices.Contains(chosen, t)})
	}
	return all
}

func groupOf(typ string) string {
	for _, g := range eventGroups {
		if strings.HasPrefix(typ, g.begins) {
			return g.name
		}
	}
	return ""
}
