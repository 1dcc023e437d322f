// Package demo shows the whole service to somebody who has never seen it: it starts millrace serve, streams into it
// with ffmpeg, and turns the stream into a recording with subtitles and a second audio track. It uses public interfaces
// only: the command line, REST, RTMP and HLS. It must never import the packages that make up the service. Run owns its
// goroutines and child processes; all of them have ended when it returns.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/id"
)

// Options is what the demo needs to know.
type Options struct {
	Config   config.Config
	Flags    []string      // settings given on the command line, handed on to serve
	Duration time.Duration // how long the encoder streams
	Binary   string        // this program; empty: os.Executable
	FFmpeg   string        // empty: the one in PATH
	Out      io.Writer     // what the person reads

	tokenID     string
	tokenSecret config.Secret
}

// stage is a running demo.
type stage struct {
	o       Options
	tool    tool
	scratch string // folder for files of the demo's own
	service *service
	api     *client
	base    string // public URL of the service
}

// Run shows everything and serves until ctx ends, which is no error. Then nothing is left: neither process nor
// temporary folder.
func Run(ctx context.Context, o Options) error {
	err := run(ctx, o)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

func run(ctx context.Context, o Options) (err error) {
	s := &stage{o: o}
	if err = s.prepare(ctx); err != nil {
		return err
	}
	s.scratch, err = os.MkdirTemp("", "millrace-demo-*")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.scratch)) }()
	if err = s.serve(ctx); err != nil {
		return err
	}
	defer func() {
		s.say("\nStopping.\n")
		s.service.stop(s.o.Config.ShutdownTimeout + 5*time.Second)
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-s.service.done
		cancel(fmt.Errorf("%w by itself:\n%s", errEnded, s.service.last.String()))
	}()
	if err = s.show(ctx); err == nil {
		s.say("\nServing until Ctrl-C.\n")
		<-ctx.Done()
		return context.Cause(ctx)
	}
	long := 500 * time.Millisecond
	if _, broke := errors.AsType[*url.Error](err); broke { // it may be the first sign of the service's end
		long = 5 * time.Second
	}
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return err
	}
}

// say prints for the person. Where that fails nobody is reading.
func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.o.Out, format, args...) }

// prepare finds the programs and the credentials.
func (s *stage) prepare(ctx context.Context) (err error) {
	if s.o.Binary == "" {
		if s.o.Binary, err = os.Executable(); err != nil {
			return fmt.Errorf("find own program: %w", err)
		}
	}
	if s.o.FFmpeg == "" {
		if s.o.FFmpeg, err = program("ffmpeg"); err != nil {
			return err
		}
	}
	s.o.tokenID, s.o.tokenSecret = s.o.Config.TokenID, s.o.Config.TokenSecret
	if s.o.tokenID == "" {
		s.o.tokenID, s.o.tokenSecret = id.NewUUID(), config.Secret(rand.Text()+rand.Text())
	}
	s.tool, err = findTool(ctx, s.o.FFmpeg)
	return err
}

// serve starts the service and prints where it is.
func (s *stage) serve(ctx context.Context) error {
	dir, fate := s.o.Config.DataDir, "kept"
	if !s.o.Config.Given("data-dir") {
		dir, fate = filepath.Join(s.scratch, "data"), "removed at the end; --data-dir keeps it"
	}
	httpAddr, taken := available(ctx, "tcp", s.o.Config.HTTPAddr)
	if taken {
		s.say("Address %s is taken: the demo takes a free port for HTTP.\n", s.o.Config.HTTPAddr)
	}
	rtmpAddr, taken := available(ctx, "tcp", s.o.Config.RTMPAddr)
	if taken {
		s.say("Address %s is taken: the demo takes a free port for RTMP.\n", s.o.Config.RTMPAddr)
	}
	srtAddr, _ := available(ctx, "udp", s.o.Config.SRTAddr) // not shown
	var err error
	if s.service, err = startService(ctx, s.o, serveArgs(s.o, dir, httpAddr, rtmpAddr, srtAddr), s.o.Out); err != nil {
		return err
	}
	s.base = strings.TrimSuffix(s.o.Config.PublicBase(s.service.http).String(), "/")
	s.api = &client{
		base:   "http://" + loopback(s.service.http),
		id:     s.o.tokenID,
		secret: s.o.tokenSecret.Reveal(),
		http:   &http.Client{Timeout: 20 * time.Second},
	}
	s.say("\nMillrace is running. Its data is in %s (%s).\n\n", dir, fate)
	if s.o.Config.Dashboard {
		link, err := dashboardLink(ctx, s.o, dir, s.service.http)
		if err != nil {
			return err
		}
		s.say("  dashboard   %s\n", link)
		s.say("              Open it in a browser and set a password; it works once, within an hour.\n")
		s.say("              Your own camera: New live stream, Create, Publish from this browser, Go live.\n\n")
	}
	s.say("  API         %s/video/v1, described at %s/docs/reference\n", s.base, s.base)
	s.say("  token ID    %s\n  secret      %s\n\n", s.o.tokenID, s.o.tokenSecret.Reveal())
	return nil
}

// show streams, records and adds the tracks.
func (s *stage) show(ctx context.Context) error {
	var who struct{}
	if err := s.api.call(ctx, http.MethodGet, "/system/v1/whoami", nil, &who); err != nil {
		return err
	}
	stream, err := s.api.createStream(ctx)
	if err != nil {
		return err
	}
	if err = s.stream(ctx, stream); err != nil {
		return err
	}
	assetID, err := s.api.assetOf(ctx, stream.ID)
	if err != nil {
		return err
	}
	asset, err := s.api.ready(ctx, assetID, 2*time.Minute)
	if err != nil {
		return err
	}
	s.say("✓ the recording is ready: %.1f s, asset %s\n", asset.Duration, asset.ID)
	if asset, err = s.addTracks(ctx, asset); err != nil {
		return err
	}
	if len(asset.PlaybackIDs) == 0 {
		return errors.New("the recording has no playback ID")
	}
	s.say("\n  watch the recording  %s/watch/%s\n", s.base, asset.PlaybackIDs[0].ID)
	s.say("  HLS                  %s/%s.m3u8\n", s.base, asset.PlaybackIDs[0].ID)
	if s.o.Config.Dashboard {
		s.say("  dashboard            %s/dashboard\n", s.base)
	}
	return nil
}

// stream runs the encoder to its end.
func (s *stage) stream(ctx context.Context, stream liveStream) error {
	speech := speak(ctx, s.tool, s.scratch, "host.wav", hostText, "kal16")
	to := "rtmp://" + loopback(s.service.rtmp) + "/app/" + stream.StreamKey
	cmd := exec.Command(s.o.FFmpeg, s.tool.streamArgs(speech, to, s.o.Duration)...) //nolint:gosec,noctx // ffmpeg; stopped below
	begin := time.Now()
	encoder, err := startProcess("ffmpeg", cmd, nil)
	if err != nil {
		return err
	}
	defer encoder.stop(5 * time.Second)
	s.say("ffmpeg streams a test picture for %s.\n\n", s.o.Duration)
	s.say("  RTMP        %s/%s\n", s.o.Config.RTMPBase(s.service.rtmp), stream.StreamKey)
	s.say("  watch live  %s/watch/%s\n", s.base, stream.PlaybackIDs[0].ID)
	s.say("  HLS         %s/%s.m3u8\n\n", s.base, stream.PlaybackIDs[0].ID)
	err = poll(ctx, 30*time.Second, "the stream does not play", func() (bool, error) {
		select {
		case <-encoder.done:
			return false, errors.Join(errors.New("the encoder ended before the stream could be played"),
				encoder.ended())
		default:
		}
		return s.api.plays(ctx, stream.PlaybackIDs[0].ID)
	})
	if err != nil {
		return err
	}
	s.say("✓ playing, %.1f s after the encoder was started\n", time.Since(begin).Seconds())
	if err := encoder.wait(ctx); err != nil {
		return err
	}
	s.say("✓ the encoder has ended\n")
	return nil
}

// addTracks adds subtitles and a second audio track from a web server of the demo's own.
func (s *stage) addTracks(ctx context.Context, asset recording) (recording, error) {
	length := max(time.Duration(asset.Duration*float64(time.Second)), time.Second)
	if err := prepareTracks(ctx, s.tool, s.scratch, length); err != nil {
		return asset, err
	}
	files, err := serveFiles(ctx, s.scratch, "subtitles.srt", "commentary.m4a")
	if err != nil {
		return asset, err
	}
	defer files.close()
	for _, t := range []trackInput{
		{URL: files.base + "subtitles.srt", Type: "text", TextType: "subtitles", Language: "en", Name: "English"},
		{URL: files.base + "commentary.m4a", Type: "audio", Language: "en", Name: "Commentary"},
	} {
		if err = s.api.call(ctx, http.MethodPost, "/video/v1/assets/"+asset.ID+"/tracks", t, nil); err != nil {
			return asset, err
		}
	}
	asset, err = s.api.ready(ctx, asset.ID, time.Minute)
	if err == nil {
		s.say("✓ subtitles “English” and audio track “Commentary” were added by URL\n")
	}
	return asset, err
}
