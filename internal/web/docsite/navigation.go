package docsite

import (
	"slices"
	"strings"
)

// entry is a page in the navigation, with a name that is short enough for it.
type entry struct{ file, name string }

// group is a part of the navigation.
type group struct {
	name  string
	pages []entry
}

// last is where pages go that no group names.
const last = "More"

// navigation is the order in which the pages are read. Those that don't exist are left out, and others come last.
func navigation() []group {
	return []group{
		{"Get started", []entry{
			{start, "What Millrace is"},
			{"install.md", "Install"},
			{"docker.md", "Docker"},
			{"kubernetes.md", "Kubernetes"},
			{"obs.md", "Go live from OBS"},
			{"mux.md", "Move from Mux"},
		}},
		{"Build", []entry{
			{"embed.md", "Embed the player"},
			{"signed-playback.md", "Sign playback"},
			{"uploads.md", "Uploads"},
			{"retention.md", "Retention"},
			{"webhooks.md", "Webhooks"},
			{"captions.md", "Captions"},
			{"simulcast.md", "Simulcast"},
			{"drm.md", "DRM"},
		}},
		{"Run", []entry{
			{"production.md", "Production"},
			{"proxies.md", "Proxies and CDNs"},
			{"s3.md", "S3 storage"},
			{"sizing.md", "Sizing"},
			{"scaling.md", "Scaling"},
			{"backup.md", "Back up and restore"},
			{"fleet.md", "Several nodes"},
			{"monitoring.md", "Monitoring"},
			{"troubleshooting.md", "Troubleshooting"},
		}},
		{"Reference", []entry{
			{"api.md", "API"},
			{"clients.md", "Client libraries"},
			{"encoders.md", "Encoders"},
			{"settings.md", "Settings"},
			{"commands.md", "Commands"},
			{"logs.md", "Log keys"},
			{"dashboard.md", "Dashboard"},
			{"access.md", "Access and audit"},
			{"network.md", "Network"},
			{"operations.md", "Operations"},
			{"drm-vendors.md", "DRM vendors"},
			{"whisper.md", "Speech with whisper.cpp"},
		}},
	}
}

// inOrder sorts the names of documents as the navigation has them.
func inOrder(names []string) (out []string) {
	for _, g := range navigation() {
		for _, e := range g.pages {
			if slices.Contains(names, e.file) {
				out = append(out, e.file)
			}
		}
	}
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// shortName is what the navigation calls a document; its title where it has no name for it.
func shortName(file, title string) string {
	for _, g := range navigation() {
		for _, e := range g.pages {
			if e.file == file {
				return e.name
			}
		}
	}
	return title
}

// shownGroup is a part of the navigation with its pages.
type shownGroup struct {
	Name  string
	Pages []*page
}

func groups(pages []*page) (out []shownGroup) {
	left := slices.Clone(pages)
	for _, g := range navigation() {
		shown := shownGroup{Name: g.name}
		for _, e := range g.pages {
			if i := slices.IndexFunc(left, func(p *page) bool { return p.File == e.file }); i >= 0 {
				shown.Pages, left = append(shown.Pages, left[i]), slices.Delete(left, i, i+1)
			}
		}
		if len(shown.Pages) > 0 {
			out = append(out, shown)
		}
	}
	if len(left) > 0 {
		out = append(out, shownGroup{last, left})
	}
	return out
}

// address is where the page of a document is.
func address(file string) string {
	if file == start {
		return "index.html"
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}
