package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

//go:embed nginx-rtmp.conf
var nginxRTMPConfig string

// nginxRTMP is nginx with its RTMP module, which writes plain HLS: segments of MPEG-TS, no parts, nothing kept.
type nginxRTMP struct {
	p          *proc.Server
	http, rtmp string
	n          int
}

func (b *bench) startNginxRTMP() (*nginxRTMP, error) {
	module, err := filepath.Abs(filepath.Join(filepath.Dir(b.nginxBinary), "../lib/nginx/modules/ngx_rtmp_module.so"))
	if err != nil {
		return nil, fmt.Errorf("find module of nginx: %w", err)
	}
	if _, err = os.Stat(module); err != nil {
		return nil, fmt.Errorf("find module of nginx (libnginx-mod-rtmp): %w", err)
	}
	hls, err := os.MkdirTemp(b.dir, "hls-")
	if err != nil {
		return nil, fmt.Errorf("make folder for HLS: %w", err)
	}
	b.litter = append(b.litter, hls)
	n := &nginxRTMP{}
	if n.http, err = free(); err != nil {
		return nil, err
	}
	if n.rtmp, err = free(); err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker writes into a folder of ours
	}
	config := strings.NewReplacer(
		"{module}", module, "{user}", user, "{http}", n.http, "{rtmp}", n.rtmp, "{hls}", hls, "{dir}", b.dir,
	).Replace(nginxRTMPConfig)
	path := filepath.Join(b.dir, "nginx-rtmp.conf")
	if err = os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	command := pinned(b.nginxBinary, "-p", b.dir, "-e", "stderr", "-c", path)
	if n.p, err = proc.Start(nil, nil, command[0], command[1:]...); err != nil {
		return nil, err
	}
	if err := errors.Join(listening(n.p, n.rtmp), listening(n.p, n.http)); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

func (*nginxRTMP) name() string            { return "nginx-rtmp" }
func (n *nginxRTMP) addr() string          { return n.http }
func (n *nginxRTMP) process() *proc.Server { return n.p }
func (n *nginxRTMP) stop()                 { n.p.Stop(5 * time.Second) }

func (n *nginxRTMP) stream(string) (publish, play string, err error) {
	n.n++
	return fmt.Sprintf("rtmp://%s/live/s%d", n.rtmp, n.n), fmt.Sprintf("/s%d.m3u8", n.n), nil
}

// watch opens a stream of a server for one look: the renditions, the video first. nginx's playlist is of media, with
// sound and picture in one.
func watch(ctx context.Context, s server, play string) ([]*viewer.Stream, error) {
	if _, plain := s.(*nginxRTMP); plain {
		x, err := viewer.Watch(s.addr(), play)
		return []*viewer.Stream{x}, err
	}
	return viewer.Tune(ctx, s.addr(), play, 100*time.Millisecond)
}
