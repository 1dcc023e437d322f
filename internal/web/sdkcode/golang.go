package sdkcode

import (
	"net/url"
	"strconv"
	"strings"
)

// golang writes requests with mux-go, which has no setting for the address of the service: it is put in below it.
func (r requests) golang(base string) string {
	if last := r.last(); last.Go == "" {
		return last.plainGo(base)
	}
	var scheme, host string
	if u, err := url.Parse(base); err == nil { // config has read it
		scheme, host = u.Scheme, u.Host
	}
	var steps strings.Builder
	for i, one := range r {
		steps.WriteString(one.goStep(i == len(r)-1))
	}
	return `package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	mux "github.com/muxinc/mux-go/v6"
)

// here sends requests to this service: the library has no setting for its address.
type here struct{ next http.RoundTripper }

func (h here) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = ` + strconv.Quote(scheme) + ", " + strconv.Quote(host) + `, ""
	return h.next.RoundTrip(r)
}

func main() {
	http.DefaultTransport = here{http.DefaultTransport}
	client := mux.NewAPIClient(mux.NewConfiguration(
		mux.WithBasicAuth(os.Getenv("MUX_TOKEN_ID"), os.Getenv("MUX_TOKEN_SECRET")),
	))
` + steps.String() + `	fmt.Println(` + r.last().outcome() + `.Data.Id)
}
`
}

// goStep writes a Request and what is done when it fails, with what the library can't send. The last one's response is
// kept.
func (r Request) goStep(last bool) string {
	w := goWriter{}
	do := "client." + r.Go + "(" + r.first() + w.structure(r.GoType, r.Body, "\t") + ")"
	note := ""
	if len(w.lacks) > 0 {
		note = "\t// This library can't send: " + strings.Join(w.lacks, ", ") + ".\n"
	}
	const fails = "err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
	if last {
		return note + "\t" + r.outcome() + ", err := " + do + "\n\tif " + fails
	}
	return note + "\tif _, err := " + do + "; " + fails
}

// goTypes are those of mux-go v6 for objects and lists, by the name of the member, or the structure and the name.
var goTypes = map[string]string{ //nolint:gochecknoglobals // a table
	"inputs":             "[]mux.InputSettings",
	"meta":               "mux.AssetMetadata",
	"new_asset_settings": "mux.CreateAssetRequest",
	"playback_policies":  "[]mux.PlaybackPolicy",
	"allowed_domains":    "[]string",
	"referrer":           "mux.ReferrerDomainRestriction",
	"user_agent":         "mux.UserAgentRestrictionRequest",
	"static_renditions":  "[]mux.CreateStaticRenditionRequest",

	"mux.UpdateLiveStreamRequest.new_asset_settings": "mux.UpdateLiveStreamNewAssetSettings",
}

// goNames are fields that are not called as the members are.
var goNames = map[string]string{ //nolint:gochecknoglobals // a table
	"inputs": "Input", "playback_policies": "PlaybackPolicy",
}

// goWriter writes literals of mux-go, and notes what they can't have.
type goWriter struct{ lacks []string }

func (g *goWriter) structure(of string, o Object, indent string) string {
	var has Object
	for _, m := range o {
		switch {
		case strings.HasSuffix(of, "LiveStreamRequest") && m.Name == "meta":
			g.lacks = append(g.lacks, m.Name)
		case m.Value == 0.0, m.Value == false, m.Value == nil: // omitempty
			g.lacks = append(g.lacks, m.Name+" of "+plainly(m.Value))
		case m.Value == "" && of != "":
			g.lacks = append(g.lacks, "empty "+m.Name)
		default:
			has = append(has, m)
		}
	}
	switch len(has) {
	case 0:
		return of + "{}"
	case 1:
		return of + "{" + goName(has[0].Name) + ": " + g.value(of, has[0], indent) + "}"
	}
	var b strings.Builder
	for _, m := range has {
		b.WriteString(indent + "\t" + goName(m.Name) + ": " + g.value(of, m, indent+"\t") + ",\n")
	}
	return of + "{\n" + b.String() + indent + "}"
}

// value writes that of a member of a structure.
func (g *goWriter) value(of string, m Member, indent string) string {
	name := goTypes[of+"."+m.Name]
	if name == "" {
		name = goTypes[m.Name]
	}
	switch v := m.Value.(type) {
	case string:
		return strconv.Quote(v)
	case Secret:
		return "os.Getenv(" + strconv.Quote(string(v)) + ")"
	case Object:
		return g.structure(name, v, indent)
	case []string:
		return name + "{" + joined(v, strconv.Quote) + "}"
	case []Object:
		return name + "{" + joined(v, func(o Object) string { return g.structure("", o, indent) }) + "}"
	}
	return plainly(m.Value)
}

// goName is the name of a field.
func goName(member string) string {
	if name := goNames[member]; name != "" {
		return name
	}
	var b strings.Builder
	for word := range strings.SplitSeq(member, "_") {
		b.WriteString(capitalised(word))
	}
	return b.String()
}
