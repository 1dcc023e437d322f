package browser_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// plainWords are those of the pictures of docs/.
var plainWords = words{
	stream: "Regatta, course A", second: "Regatta, course B", asset: "Training, leg 2", clip: "The start",
	track: "Suomi", token: "Backup script", passthrough: "season-12", creator: "club", encoder: "OBS Studio 31",
	cue: "Tuuli kääntyy, hei!",
}

// maxPicture is how many bytes a picture of docs/ may have.
const maxPicture = 60_000

// pictures is the folder that pictures for docs/ are put into; empty: none are wanted.
type pictures string

// picturesWanted is the folder that MILLRACE_TEST_PICTURES names.
func picturesWanted(t *testing.T) pictures {
	t.Helper()
	dir := os.Getenv("MILLRACE_TEST_PICTURES")
	if dir == "" {
		return ""
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return pictures(dir)
}

func (pics pictures) wanted() bool { return pics != "" }

// picture takes what can be seen of a page, as good as it fits.
func (pics pictures) picture(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if !pics.wanted() {
		return
	}
	p.Await(t, "has its pictures", "[...document.images].every((i) => i.complete)", patience)
	rig.Pause(time.Second) // pages turn into one another, and colours change, for a moment
	p.Eval(t, "document.activeElement.blur()", nil)
	shot := filepath.Join(t.TempDir(), "shot.png")
	p.Picture(t, shot)
	file := filepath.Join(string(pics), name+".webp")
	for quality := 85; quality > 40; quality -= 5 {
		args := []string{"-loglevel", "error", "-y", "-i", shot, "-quality", strconv.Itoa(quality), file}
		if said, err := exec.CommandContext(t.Context(), rig.FFmpeg(t), args...).CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", file, err, said)
		}
		if info, err := os.Stat(file); err != nil || info.Size() <= maxPicture {
			return
		}
	}
	t.Errorf("%s has more than %d bytes", file, maxPicture)
}

// camera is what Chromium is told so that its camera shows a regatta.
func (pics pictures) camera(t *testing.T) []string {
	t.Helper()
	if !pics.wanted() {
		return nil
	}
	film := programtest.SharedMedia(t, "camera.mjpeg", "-i", pics.film(t), "-an", "-q:v", "3")
	return []string{"--use-file-for-fake-video-capture=" + film}
}

// broadcast is what the encoder of the tour sends.
func (pics pictures) broadcast(t *testing.T) rig.Clip {
	t.Helper()
	if !pics.wanted() {
		return rig.Clip{Size: "320x180", Kbit: 300, GOP: 1}
	}
	return rig.Clip{File: pics.film(t)}
}

// film is the file of 12 seconds that the tour adds.
func (pics pictures) film(t *testing.T) string {
	t.Helper()
	if !pics.wanted() {
		return rig.File(t, "film.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 12})
	}
	return programtest.SharedMedia(t, "regatta.mp4", "-f", "lavfi", "-i", regatta(), "-f", "lavfi", "-i",
		"sine=frequency=220:sample_rate=48000", "-t", "12", "-c:v", "libx264", "-preset", "veryfast", "-b:v", "2500k",
		"-g", "60", "-keyint_min", "60", "-sc_threshold", "0", "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "aac")
}

// regatta draws a boat under a low sun for 12 seconds: ten pictures a second, for each takes ffmpeg a while.
func regatta() string {
	const x = "(150+8*T)"
	const y = "(214+3*sin(T*1.3))"
	is := func(r, g, b string, where string) [4]string { return [4]string{where, r, g, b} }
	layers := [][4]string{ // the nearest first
		is("18", "62", "84", "gt(Y,300+9*sin(X/75+T*0.7+2))"),
		is("26", "84", "108", "gt(Y,256+6*sin(X/55-T*0.9+1))"),
		is("250", "246", "236", "between(Y,"+y+"-96,"+y+")*between(X-"+x+",2,2+(Y-"+y+"+96)*0.5)"),
		is("236", "96", "64", "between(Y,"+y+"-74,"+y+")*between("+x+"-X,2,2+(Y-"+y+"+74)*0.36)"),
		is("44", "30", "34", "between(Y,"+y+"+4,"+y+"+16)*between(X-"+x+",-40+(Y-"+y+"),56-(Y-"+y+"))"),
		is("44", "112", "134", "gt(Y,212+4*sin(X/40+T*1.2))"),
		is("255", "226", "170", "lt(hypot(X-470,Y-168),34)"),
	}
	sky := [3]string{"250-Y*0.25+20*Y/212", "206-70*(1-Y/212)", "170+40*(1-Y/212)"}
	var planes []string
	for n, plane := range sky {
		var b strings.Builder
		for _, l := range layers {
			b.WriteString("if(" + l[0] + "," + l[n+1] + ",")
		}
		b.WriteString(plane + strings.Repeat(")", len(layers)))
		planes = append(planes, []string{"r", "g", "b"}[n]+"='"+b.String()+"'")
	}
	return "color=s=640x360:r=10,format=gbrp,geq=" + strings.Join(planes, ":") +
		",scale=1280:720:flags=bicubic,fps=30,format=yuv420p"
}

// healthPictures are of the page of a live stream whose encoder has sent for a while, the last two in the dark and on a
// phone.
func (to *tour) healthPictures() {
	t, p := to.t, to.p
	if !to.wanted() {
		return
	}
	p.Await(t, "has graphs of some length", "document.querySelectorAll('#minutes tbody tr').length > 2 && "+
		"document.querySelector('[data-player] video')?.currentTime > 3", patience)
	to.picture(t, p, "live-stream")
	p.Eval(t, "document.getElementById('health').scrollIntoView()", nil)
	to.picture(t, p, "health")
	p.Eval(t, "scrollTo(0, 0)", nil)
	p.Click(t, "[data-themes] button")
	to.picture(t, p, "live-stream-dark")
	p.Click(t, "[data-themes] button")
	p.Resize(t, 390, 844)
	to.picture(t, p, "phone")
	p.Resize(t, 1280, 800)
}

// clipPicture is of a film with the marks of a clip, and the picture under the pointer on the seek bar.
func (to *tour) clipPicture() {
	t, p := to.t, to.p
	if !to.wanted() {
		return
	}
	p.Eval(t, `scrollTo(0, 140); (() => {
		const {left, width} = seek.getBoundingClientRect();
		seek.dispatchEvent(new PointerEvent('pointermove', {clientX: left + width * 0.4}));
	})()`, nil)
	p.Await(t, "shows the picture there",
		"tile.checkVisibility() && tile.style.backgroundImage.includes('/storyboard.jpg')", patience)
	to.picture(t, p, "asset")
	p.Eval(t, "seek.dispatchEvent(new PointerEvent('pointerleave'))", nil)
}
