package cli

import (
	"context"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

func environmentCommands() []command {
	frames := func(t Tokens, ctx context.Context, e id.Environment, origins string, now time.Time) error {
		return t.SetFrameAncestors(ctx, e, strings.Split(origins, ","), now)
	}
	return []command{
		of("environment video-quality basic|plus|premium|default", "set the default video quality",
			"Sets the video_quality of assets and live streams created without one: basic, plus or premium (for "+
				"live streams basic means plus), or default for the service's own: basic on demand, plus live. "+
				"Takes effect within seconds, for new assets and live streams.",
			&environmentSet{set: Tokens.SetQuality}),
		of("environment captions RULES", "set the speech recognition engine of each language",
			"Sets the environment's speech recognition engines, as pairs of a language (* for all others) and an "+
				"engine: en=pocketsphinx,*=openai. none turns a language off; default restores the service's own "+
				"setting (--speech-engines). millrace doctor lists the engines. Takes effect for new broadcasts and "+
				"tracks.", &environmentSet{set: Tokens.SetCaptions}),
		of("environment live-rungs on_demand|always|off|default",
			"set when lower renditions of live streams are encoded",
			"Sets when the lower renditions of the environment's live streams are encoded: on_demand (while "+
				"somebody watches them), always or off; default restores the service's own setting (--live-rungs). "+
				"Takes effect for new broadcasts.", &environmentSet{set: Tokens.SetLiveRungs}),
		of("environment create NAME", "create an environment",
			"Creates an environment and prints its ID. Only its own tokens can see what belongs to it.",
			&environmentCreate{}),
		of("environment list", "list the environments",
			"Lists the environments, oldest first.", simply(environmentList)),
		of("environment rename ENVIRONMENT-ID NAME", "rename an environment",
			"Changes the name of an environment.", simply(environmentRename)),
		of("environment frame-ancestors ORIGINS", "set which sites may embed players",
			"Sets which origins may embed the environment's /watch and /embed pages in a frame: all (the default), "+
				"none, or a list such as https://example.com,https://*.example.com. Takes effect within seconds.",
			&environmentSet{set: frames}),
	}
}

// defaultWord takes a setting back from an environment.
const defaultWord = "default"

// environmentSet changes one setting of an environment, and says what it is now.
type environmentSet struct {
	inEnvironment

	set func(t Tokens, ctx context.Context, e id.Environment, word string, now time.Time) error
}

func (e *environmentSet) run(ctx context.Context, r *request) error {
	what := strings.TrimPrefix(r.command, "environment ")
	word, shown, whose := r.words[0], r.words[0], "the default environment"
	if word == defaultWord && what != "frame-ancestors" {
		word = ""
	}
	if shown == defaultWord {
		shown += ", the service's own"
	}
	if e.environment != "" {
		whose = "environment " + string(e.environment)
	}
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		return r.done(e.set(t, ctx, e.environment, word, r.now), "%s of %s: %s", what, whose, shown)
	})
}

// environmentCreate makes an environment.
type environmentCreate struct{ kind string }

func (e *environmentCreate) flags(f *flags) {
	f.mayCreate()
	f.oneOf(&e.kind, []string{"production", "development"}, "type", "type", "production",
		"A label: production or development.")
}

func (e *environmentCreate) run(ctx context.Context, r *request) error {
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		made, err := t.CreateEnvironment(ctx, r.words[0], e.kind, r.now)
		return r.done(err, "%s", made.ID)
	})
}

func environmentRename(ctx context.Context, r *request) error {
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		_, err := t.RenameEnvironment(ctx, id.Environment(r.words[0]), r.words[1], r.now)
		return r.done(err, "Environment %s is called %q now.", r.words[0], r.words[1])
	})
}

const environmentsPage = 100

func environmentList(ctx context.Context, r *request) error {
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		tab := newTable(r.out)
		tab.row("ID", "NAME", "TYPE", "CREATED", "FRAME ANCESTORS")
		for page := 1; ; page++ {
			found, err := t.Environments(ctx, page, environmentsPage)
			if err != nil {
				return err
			}
			for _, e := range found {
				ancestors := "all"
				switch e.FrameAncestors {
				case "":
				case access.FrameNone:
					ancestors = "none"
				default:
					ancestors = strings.ReplaceAll(e.FrameAncestors, " ", ",")
				}
				tab.row(e.ID, e.Name, e.Kind, timeOrNone(e.CreatedAt), ancestors)
			}
			if len(found) < environmentsPage {
				return tab.end()
			}
		}
	})
}
