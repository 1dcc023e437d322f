package demo

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is ffmpeg and what it can do on this machine.
type tool struct {
	path    string
	filters []string
	font    string // a font file, or empty
}

// findTool looks ffmpeg over.
func findTool(ctx context.Context, path string) (tool, error) {
	out, err := exec.CommandContext(ctx, path, "-hide_banner", "-filters").Output()
	if err != nil {
		return tool{}, fmt.Errorf("list ffmpeg's filters: %w", err)
	}
	t := tool{path: path, font: findFont("/usr/share/fonts")}
	for line := range strings.Lines(string(out)) { // " T.C drawtext   V->V   Draw text …"
		if f := strings.Fields(line); len(f) > 2 && strings.Contains(f[2], "->") {
			t.filters = append(t.filters, f[1])
		}
	}
	return t, nil
}

func (t tool) can(filter string) bool { return slices.Contains(t.filters, filter) }

// findFont gives a TrueType file under root, a fixed-width one if there is any; empty if there is none.
func findFont(root string) (font string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".ttf") || strings.ContainsAny(path, `'\:,;[]`) {
			return nil //nolint:nilerr // a folder that cannot be read has no font for us
		}
		if font == "" {
			font = path
		}
		if strings.HasSuffix(path, "Mono-Bold.ttf") || strings.HasSuffix(path, "Mono.ttf") {
			font = path
			return fs.SkipAll
		}
		return nil
	})
	return font
}

// picture is the filter graph of the moving picture. testsrc2 counts by itself; with a font there is the time of day
// too.
func (t tool) picture() string {
	graph := "testsrc2=size=1280x720:rate=30"
	if t.font != "" && t.can("drawtext") {
		graph += ",drawtext=fontfile=" + t.font +
			`:text='%{localtime\:%T}':fontsize=96:fontcolor=white:box=1:boxcolor=black@0.6:boxborderw=16:x=(w-tw)/2:y=h-th-60`
	}
	return graph + ",format=yuv420p"
}

// murmur sounds a little like speech: a voice's buzz, two vowels' formants that wander, and syllables.
const murmur = `aevalsrc=exprs='0.25*pow(max(0,sin(2*PI*1.9*t)),0.6)*(0.6+0.4*sin(2*PI*0.31*t))` +
	`*(sin(2*PI*118*t+2*sin(2*PI*0.7*t))+0.6*sin(2*PI*590*t+40*sin(2*PI*0.9*t))+0.35*sin(2*PI*1450*t+60*sin(2*PI*1.3*t)))':sample_rate=48000`

// chime is what the second audio track has when nothing can speak.
const chime = `aevalsrc=exprs='0.25*exp(-3*mod(t,1))*(sin(2*PI*(440+110*mod(floor(t),4))*t)+0.4*sin(4*PI*(440+110*mod(floor(t),4))*t))':sample_rate=48000`

// voiceGraph is a filter graph that speaks text once. The text must be free of quotes.
func voiceGraph(text, voice string) string {
	return "flite=text='" + text + "':voice=" + voice + ",aresample=48000"
}

// streamArgs is the command line of the encoder that streams to url. speech is a sound file to repeat; empty takes the
// murmur.
func (t tool) streamArgs(speech, url string, length time.Duration) []string {
	args := []string{"-hide_banner", "-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", t.picture()}
	if speech != "" {
		args = append(args, "-re", "-stream_loop", "-1", "-i", speech)
	} else {
		args = append(args, "-re", "-f", "lavfi", "-i", murmur)
	}
	return append(args,
		"-t", seconds(length), "-map", "0:v", "-map", "1:a",
		"-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-g", "60", "-sc_threshold", "0", "-b:v",
		"2500k", "-maxrate", "2500k", "-bufsize", "2500k",
		"-c:a", "aac", "-b:a", "128k", "-ac", "2", "-ar", "48000",
		"-f", "flv", url)
}

// soundArgs is the command line that writes a sound file from a filter graph.
func soundArgs(graph, file string) []string {
	return []string{
		"-hide_banner", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i", graph, "-ac", "2", "-ar", "48000",
		file,
	}
}

// trackArgs is the command line that makes an M4A of the given length; it repeats the file speech, or takes the chime.
func trackArgs(speech, file string, length time.Duration) []string {
	args := []string{"-hide_banner", "-nostdin", "-loglevel", "error", "-y"}
	if speech != "" {
		args = append(args, "-stream_loop", "-1", "-i", speech)
	} else {
		args = append(args, "-f", "lavfi", "-i", chime)
	}
	return append(args, "-t", seconds(length), "-c:a", "aac", "-b:a", "96k", "-ac", "2", "-ar", "48000", file)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
