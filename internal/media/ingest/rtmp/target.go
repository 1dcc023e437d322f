package rtmp

import (
	"slices"
	"strings"
)

const maxKey = 256 // bytes

// applications are the first part of the path that publishers may use.
var applications = []string{"app", "live"} //nolint:gochecknoglobals // a table

// segments splits a path and leaves out its query, empty parts and the instance name that Flash encoders add.
func segments(path string) []string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "_definst_" })
}

// urlSegments gives the path of a tcUrl. It is not url.Parse: keys are taken as they are, and a quoted or odd URL still
// has a path.
func urlSegments(tcURL string) []string {
	_, rest, ok := strings.Cut(strings.Trim(tcURL, "'\" "), "://")
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "?")
	_, path, _ := strings.Cut(rest, "/")
	return segments(path)
}

// knownApplication reports whether a connect command may go on; what is left open there is decided by its stream name.
func knownApplication(app, tcURL string) bool {
	s := segments(app)
	if len(s) == 0 {
		s = urlSegments(tcURL)
	}
	return len(s) > 0 && slices.Contains(applications, s[0])
}

// streamKey finds the key wherever an encoder puts it: rtmp://host/app/{key} may come as application and stream name,
// all in the application, or all in the tcUrl, and each with a query. "" means that there is no key, or a path that is
// not ours.
func streamKey(app, tcURL, name string) string {
	named := segments(name)
	for _, base := range [][]string{segments(app), urlSegments(tcURL)} {
		path := slices.Concat(base, named)
		if len(path) == 2 && slices.Contains(applications, path[0]) && validKey(path[1]) {
			return path[1]
		}
	}
	// the whole path in the URL and once more as the stream name
	if path := urlSegments(tcURL); len(path) == 2 && len(named) == 1 && path[1] == named[0] &&
		slices.Contains(applications, path[0]) && validKey(path[1]) {
		return path[1]
	}
	return ""
}

func validKey(key string) bool {
	return len(key) <= maxKey && !strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
}

// encoderName makes what an encoder says about itself fit for a log line.
func encoderName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, s)
	return s[:min(len(s), 80)]
}
