package cli

import (
	"context"
	"errors"
	"time"

	"millrace/internal/app/demo"
	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/storage/blob"
)

const serveCommand = "serve"

func serviceCommands() []command {
	return []command{
		of("serve", "run the service",
			"Runs the API, ingest, playback and workers in one process until Ctrl-C or SIGTERM. A second Ctrl-C "+
				"stops it at once.",
			simply(func(ctx context.Context, r *request) error { return r.Serve(ctx, r.cfg) }), serving),
		of("demo", "run the service with a test encoder and print its URLs",
			"Starts the service, streams a generated picture into it with ffmpeg, turns the stream into a recording "+
				"with subtitles and a second audio track, and keeps serving until Ctrl-C.\nWithout --data-dir "+
				"everything is kept in a temporary folder and removed at the end. Ports in use are replaced by free "+
				"ones.", &demoRun{}, serving),
		of("doctor", "check ffmpeg, ports, database, storage, clock and disk",
			"Checks everything the service needs, with the settings it would run with, and says how to fix what is "+
				"wrong. Exit code 1 if anything is.", &doctorRun{}, warning, finding),
	}
}

// demoRun runs the service with an encoder.
type demoRun struct{ duration time.Duration } // how long the encoder streams

func (dr *demoRun) flags(f *flags) {
	add(f, &dr.duration, func(text string) (time.Duration, error) {
		d, err := config.ParseDuration(text)
		if err == nil && (d < 10*time.Second || d > time.Hour) {
			err = errors.New("is not between 10s and 1h")
		}
		return d, err
	}, "duration", "duration", "45s", "How long the demo's encoder streams, 10s to 1h.")
}

func (dr *demoRun) run(ctx context.Context, r *request) error {
	return demo.Run(ctx, demo.Options{Config: r.cfg, Flags: r.settings, Duration: dr.duration, Out: r.out})
}

// doctorRun checks what the service needs.
type doctorRun struct{ json bool }

func (d *doctorRun) flags(f *flags) { f.asJSON(&d.json) }

func (d *doctorRun) run(ctx context.Context, r *request) error {
	engines, err := r.SpeechEngines(r.cfg)
	if err != nil {
		return err
	}
	o := doctor.Options{
		Config: r.cfg, SpeechEngines: engines,
		OpenStorage: func(ctx context.Context, url config.Secret) (blob.Store, error) {
			return r.OpenStorage(ctx, r.cfg, url)
		},
	}
	if r.UploadsLeft != nil {
		o.UploadsLeft = func(ctx context.Context) (doctor.UploadsLeft, error) { return r.UploadsLeft(ctx, r.cfg) }
	}
	healthy, err := doctor.Run(ctx, doctor.Checks(o), r.out, d.json)
	if err == nil && !healthy {
		return errFound
	}
	return err
}
