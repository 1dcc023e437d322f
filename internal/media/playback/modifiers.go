package playback

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
)

// Clip is a stretch of a presentation that alone is listed: every segment that has something of it. Zero fields are no
// bounds.
type Clip struct {
	From, To   float64   // seconds
	Begin, End time.Time // wall clock
}

// modifiers are what a viewer's URL asks to be different about playlists. A media playlist's are handed on by the
// multivariant playlist.
type modifiers struct {
	most, least int // pixels of a picture's shorter side; 0: any
	descending  bool
	subtitles   string // language whose subtitles are shown unless the viewer says otherwise
	dateless    bool
	plain       bool // without low latency
	textHold    bool // as far behind live as the text is
	trick       bool // with an image playlist for trick play
	clip        Clip
	passed      string // what media playlists are asked with; empty, or with its question mark
}

// modifiersOf reads a query. Whatever else is in it is none of ours.
func modifiersOf(query string) (modifiers, error) {
	var m modifiers
	if query == "" {
		return m, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return m, fault.New(fault.Invalid, "the query of the URL can't be read")
	}
	var problems fault.List
	m.most, m.least = resolution(&problems, values, "max_resolution"), resolution(&problems, values, "min_resolution")
	if m.most > 0 && m.least > m.most {
		problems.Add("min_resolution must not be above max_resolution")
	}
	switch values.Get("rendition_order") {
	case "":
	case "desc":
		m.descending = true
	default:
		problems.Add("rendition_order must be: desc")
	}
	m.subtitles = values.Get("default_subtitles_lang")
	m.dateless = flag(&problems, values, "exclude_pdt", false)
	m.plain = !flag(&problems, values, "low_latency", true)
	m.textHold = flag(&problems, values, "text_hold_back", false)
	m.trick = flag(&problems, values, "roku_trick_play", false)
	m.clip = Clip{
		From: seconds(&problems, values, "asset_start_time"), To: seconds(&problems, values, "asset_end_time"),
		Begin: epoch(&problems, values, "program_start_time"), End: epoch(&problems, values, "program_end_time"),
	}
	if m.clip.To > 0 && m.clip.To <= m.clip.From {
		problems.Add("asset_end_time must be after asset_start_time")
	}
	if !m.clip.End.IsZero() && !m.clip.End.After(m.clip.Begin) {
		problems.Add("program_end_time must be after program_start_time")
	}
	m.passed = passed(values)
	return m, problems.Err()
}

// passedNames are the modifiers that media playlists are about.
var passedNames = []string{ //nolint:gochecknoglobals // constants
	"exclude_pdt", "low_latency", "text_hold_back", "asset_start_time", "asset_end_time", "program_start_time",
	"program_end_time",
}

// passed are those that were given, in the form of a query.
func passed(values url.Values) string {
	on := url.Values{}
	for _, name := range passedNames {
		if v := values.Get(name); v != "" {
			on.Set(name, v)
		}
	}
	if len(on) == 0 {
		return ""
	}
	return "?" + on.Encode()
}

func resolution(problems *fault.List, values url.Values, name string) int {
	v := values.Get(name)
	allowed := []string{"270p", "360p", "480p", "540p", "720p", "1080p", "1440p", "2160p"}
	if v == "" {
		return 0
	}
	if !slices.Contains(allowed, v) {
		problems.Add("%s must be one of: %s", name, strings.Join(allowed, ", "))
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(v, "p")) // it is on the list
	return n
}

func flag(problems *fault.List, values url.Values, name string, preset bool) bool {
	switch values.Get(name) {
	case "":
		return preset
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	problems.Add("%s must be true or false", name)
	return preset
}

// seconds reads a time of the asset.
func seconds(problems *fault.List, values url.Values, name string) float64 {
	v := values.Get(name)
	if v == "" {
		return 0
	}
	s, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > 1e6 {
		problems.Add("%s must be a number of seconds of 0 or more", name)
		return 0
	}
	return s
}

// epoch reads a time of day in seconds since 1970.
func epoch(problems *fault.List, values url.Values, name string) time.Time {
	v := values.Get(name)
	if v == "" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 || n > 1e11 {
		problems.Add("%s must be a time in whole seconds since 1970", name)
		return time.Time{}
	}
	return time.Unix(n, 0)
}

// apply makes a multivariant playlist what was asked for; pictures are those of its presentation.
func (m modifiers) apply(p *hls.Multivariant, pictures []hls.Picture) {
	if p.Variants = slices.Clone(p.Variants); m.bounded() {
		m.bound(p, pictures)
	}
	if m.descending {
		slices.SortStableFunc(p.Variants, func(a, b hls.Variant) int { return b.Short() - a.Short() })
	}
	if m.subtitles != "" {
		m.showSubtitles(p)
	}
}

// showSubtitles makes the first subtitles that meet the language best the default: en is met by en-US too, and en-US by
// en, or else by en-GB. Forced ones leave out most of what is said.
func (m modifiers) showSubtitles(p *hls.Multivariant) {
	p.Renditions = slices.Clone(p.Renditions)
	best, how := -1, 0
	for i, r := range p.Renditions {
		if met := meets(r.Language, m.subtitles); r.Type == "SUBTITLES" && !r.Forced && met > how {
			best, how = i, met
		}
	}
	if best >= 0 {
		p.Renditions[best].Default = true
	}
}

// meets is how well a language is what was asked for; 0: it is another one.
func meets(language, asked string) int {
	base, _, regional := strings.Cut(language, "-")
	wanted, _, _ := strings.Cut(asked, "-")
	switch {
	case language == "":
		return 0
	case strings.EqualFold(language, asked):
		return 3
	case strings.EqualFold(base, asked), strings.EqualFold(base, wanted) && !regional:
		return 2
	case strings.EqualFold(base, wanted):
		return 1
	}
	return 0
}

// text makes a media playlist's text what was asked for.
func (m modifiers) text(playlist []byte) []byte {
	if m.plain {
		playlist = hls.Plain(playlist)
	}
	if m.dateless {
		playlist = hls.WithoutDates(playlist)
	}
	return hls.Asked(playlist, m.passed)
}
