package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mediaPlaylist is one rendition's list of files.
type mediaPlaylist struct {
	url     string
	audio   bool
	entries []entry
	text    string
}

// entry is a file that a media playlist names: an init segment or a whole segment. Those that are gaps are left out.
type entry struct {
	url  string
	init bool
}

var uriAttribute = regexp.MustCompile(`URI="([^"]+)"`)

// mediaPlaylists reads the multivariant playlist and every audio and video playlist that it names.
func mediaPlaylists(t *testing.T, address string) []mediaPlaylist {
	t.Helper()
	var list []mediaPlaylist
	master := string(get(t, address))
	for line := range strings.Lines(master) {
		line = strings.TrimSpace(line)
		switch m := uriAttribute.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "#EXT-X-MEDIA:TYPE=AUDIO") && m != nil:
			list = append(list, mediaPlaylist{url: join(t, address, m[1]), audio: true})
		case line != "" && !strings.HasPrefix(line, "#"):
			list = append(list, mediaPlaylist{
				url: join(t, address, line), audio: !strings.Contains(master, "RESOLUTION="),
			})
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s names no media playlist:\n%s", address, master)
	}
	for i := range list {
		list[i].read(t)
	}
	return list
}

func (m *mediaPlaylist) read(t *testing.T) {
	t.Helper()
	m.text = string(get(t, m.url))
	lines := bufio.NewScanner(strings.NewReader(m.text))
	// there is nothing under the next address: an encoder that was stopped had sent less of the one than of the other
	gap := false
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "#EXT-X-GAP":
			gap = true
		case strings.HasPrefix(line, "#EXT-X-MAP:"):
			m.entries = append(m.entries, entry{
				url: join(t, m.url, uriAttribute.FindStringSubmatch(line)[1]), init: true,
			})
		case line != "" && !strings.HasPrefix(line, "#"):
			if !gap {
				m.entries = append(m.entries, entry{url: join(t, m.url, line)})
			}
			gap = false
		}
	}
}

func join(t *testing.T, base, ref string) string {
	t.Helper()
	u, err := resolve(base, ref)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get fetches what must be there.
func get(t *testing.T, address string) []byte {
	t.Helper()
	code, b, err := try(t.Context(), address)
	if err != nil || code != http.StatusOK {
		t.Fatalf("%s: status %d: %v: %.200s", address, code, err, b)
	}
	return b
}

// try fetches what may not be there.
func try(ctx context.Context, address string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(io.LimitReader(res.Body, 256<<20))
	return res.StatusCode, b.Bytes(), err
}

// references lists the media playlists that a multivariant playlist names.
func references(master string) []string {
	var list []string
	for line := range strings.Lines(master) {
		line = strings.TrimSpace(line)
		if m := uriAttribute.FindStringSubmatch(line); m != nil {
			list = append(list, m[1])
		} else if line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

func resolve(base, ref string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// path is a URL without its authority.
func path(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.RequestURI()
}

// seconds sums up what the playlist lists: whole segments, and the parts of the open one.
func (m *mediaPlaylist) seconds(t *testing.T) float64 {
	t.Helper()
	total, parts := 0.0, 0.0
	gap := false
	for line := range strings.Lines(m.text) {
		line = strings.TrimSpace(line)
		value, isPart := strings.CutPrefix(line, "#EXT-X-PART:")
		switch {
		case line == "#EXT-X-GAP":
			gap = true
		case isPart:
			for a := range strings.SplitSeq(value, ",") {
				if d, ok := strings.CutPrefix(a, "DURATION="); ok {
					parts += number(t, d)
				}
			}
		case strings.HasPrefix(line, "#EXTINF:"):
			if d := number(t, strings.TrimSuffix(strings.TrimPrefix(line, "#EXTINF:"), ",")); !gap {
				total += d
			}
			parts, gap = 0, false
		}
	}
	return total + parts
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
