package settings

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const defaultsPath = shell.SettingsPath + "/defaults"

// Configured is what the service itself is set to: environments have it that have nothing of their own.
type Configured struct {
	LiveRungs string // --live-rungs
	Speech    string // --speech-engines; empty: the first engine that takes the language
}

// setting changes one of an environment.
type setting func(ctx context.Context, e id.Environment, value string, now time.Time) error

// defaults are the settings that the dashboard changes, by the last parts of their addresses.
var defaults = map[string]func(access.API) setting{ //nolint:gochecknoglobals // a table
	"video-quality": func(a access.API) setting { return a.SetQuality },
	"live-rungs":    func(a access.API) setting { return a.SetLiveRungs },
	"captions":      func(a access.API) setting { return a.SetCaptions },
	"frame-ancestors": func(a access.API) setting {
		return func(ctx context.Context, e id.Environment, value string, now time.Time) error {
			return a.SetFrameAncestors(ctx, e, origins(value), now)
		}
	},
}

// origins are what is typed, with spaces or commas between them; nothing: all.
func origins(value string) []string {
	typed := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(typed) == 0 {
		return []string{"all"}
	}
	return typed
}

func (rm *room) routeDefaults() {
	rm.Handle("GET "+defaultsPath, "", shell.Owns, rm.showDefaults)
	rm.Handle("POST "+defaultsPath+"/{setting}", "update-environment", shell.Owns, rm.setDefault)
}

// defaultsPage is the page of an environment's defaults: what they are, or what was typed, by their parts of addresses.
type defaultsPage struct {
	Quality, LiveRungs, Captions, Ancestors string
	Service                                 Configured
	shell.FormErrors
}

// Section is where in the settings the page is.
func (defaultsPage) Section() string { return "defaults" }

func (rm *room) defaultsOf(e access.Environment) defaultsPage {
	d := defaultsPage{Quality: e.VideoQuality, LiveRungs: e.LiveRungs, Captions: e.Captions, Service: rm.Configured}
	if d.Ancestors = e.FrameAncestors; d.Ancestors == access.FrameNone {
		d.Ancestors = "none"
	}
	return d
}

func (rm *room) showDefaults(r *shell.Request) (shell.View, error) {
	return shell.Show("defaults", rm.defaultsOf(r.Person.Environment)), nil
}

// setDefault changes one of them. What was typed stays where it is when it is refused.
func (rm *room) setDefault(r *shell.Request) (shell.View, error) {
	name, value := r.PathValue("setting"), r.Text("value")
	set, known := defaults[name]
	if !known {
		return shell.View{}, shell.ErrNothing
	}
	err := set(rm.Access)(r.Context(), r.Person.Environment.ID, value, rm.Now())
	switch {
	case err == nil:
		return shell.Redirect(defaultsPath + "#" + name), nil
	case fault.Is(err, fault.Invalid):
		d := rm.defaultsOf(r.Person.Environment)
		d.Add(name, shell.Sentence(err)+".")
		switch name {
		case "captions":
			d.Captions = value
		case "frame-ancestors":
			d.Ancestors = value
		}
		return shell.ShowAs(http.StatusBadRequest, "defaults", d), nil
	default:
		return shell.View{}, err
	}
}
