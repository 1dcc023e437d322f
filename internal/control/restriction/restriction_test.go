package restriction

import (
	"fmt"
	"strings"
	"testing"

	"millrace/internal/fault"
)

func TestReferrers(t *testing.T) {
	t.Parallel()
	const example, below = "example.com", "*.example.com"
	for _, tt := range []struct {
		domains []string
		given   []string
		none    bool // allow_no_referrer
		want    bool
	}{
		{nil, []string{"https://example.com/"}, false, false},
		{nil, nil, false, false},
		{nil, nil, true, true},
		{nil, []string{""}, true, true},
		{[]string{"*"}, nil, false, false},
		{[]string{"*"}, []string{"https://anything.test/page"}, false, true},
		{[]string{"*"}, []string{"about:blank"}, true, false},
		{[]string{"*"}, []string{"null"}, true, false},
		{[]string{example}, []string{"https://example.com"}, false, true},
		{[]string{example}, []string{"https://example.com/"}, false, true},
		{[]string{example}, []string{"http://example.com:8080/a?b=c#d"}, false, true},
		{[]string{example}, []string{"HTTPS://EXAMPLE.COM/"}, false, true},
		{[]string{example}, []string{"https://example.com./"}, false, true},
		{[]string{example}, []string{"https://www.example.com/"}, false, false},
		{[]string{example, "www.example.com"}, []string{"https://www.example.com/"}, false, true},
		{[]string{below}, []string{"https://www.example.com/"}, false, true},
		{[]string{below}, []string{"https://example.com/"}, false, false},
		{[]string{below}, []string{"https://a.b.example.com/"}, false, false},
		{[]string{"*.b.example.com"}, []string{"https://a.b.example.com/"}, false, true},
		{[]string{"localhost"}, []string{"http://localhost:3000/"}, false, true},
		{[]string{"127.0.0.1"}, []string{"http://127.0.0.1:3000/"}, false, true},
		{[]string{"[::1]"}, []string{"http://[::1]:3000/"}, false, true},
		{[]string{"xn--bcher-kva.example"}, []string{"https://xn--bcher-kva.example/"}, false, true},
		// Forms that try to look like an allowed one.
		{[]string{example}, []string{"https://example.com.evil.test/"}, true, false},
		{[]string{example}, []string{"https://evilexample.com/"}, true, false},
		{[]string{below}, []string{"https://evil-example.com/"}, true, false},
		{[]string{below}, []string{"https://.example.com/"}, true, false},
		{[]string{example}, []string{"https://evil.test/example.com"}, true, false},
		{[]string{example}, []string{"https://evil.test/?https://example.com/"}, true, false},
		{[]string{example}, []string{"https://evil.test#@example.com/"}, true, false},
		{[]string{example}, []string{"https://example.com@evil.test/"}, true, false},
		{[]string{example}, []string{"https://evil.test@example.com/"}, true, false},
		{[]string{example}, []string{`https://evil.test\@example.com/`}, true, false},
		{[]string{example}, []string{"https://evil.test%2f.example.com/"}, true, false},
		{[]string{below}, []string{"https://evil.test%2f.example.com/"}, true, false},
		{[]string{below}, []string{"https://evil.test%00.example.com/"}, true, false},
		{[]string{below}, []string{"https://a\x00.example.com/"}, true, false},
		{[]string{below}, []string{"https://a b.example.com/"}, true, false},
		{[]string{example}, []string{"//example.com/"}, true, false},
		{[]string{example}, []string{"example.com"}, true, false},
		{[]string{example}, []string{"ftp://example.com/"}, true, false},
		{[]string{example}, []string{"javascript://example.com/%0aalert(1)"}, true, false},
		{[]string{example}, []string{"data:text/html,https://example.com/"}, true, false},
		{[]string{example}, []string{"https:example.com"}, true, false},
		{[]string{example}, []string{"https:///example.com/"}, true, false},
		{[]string{example}, []string{" https://example.com/"}, true, false},
		{[]string{example}, []string{"https://example.com/", "https://evil.test/"}, true, false},
		{[]string{example}, []string{"https://evil.test/", "https://example.com/"}, true, false},
		{[]string{example}, []string{"https://evil.test/, https://example.com/"}, true, false},
		{[]string{example}, []string{"https://ex\u0430mple.com/"}, true, false},
		{[]string{"127.0.0.1"}, []string{"http://0x7f.1/"}, true, false},
	} {
		r := Referrer{AllowedDomains: tt.domains, AllowNoReferrer: tt.none}
		if err := r.check(); err != nil {
			t.Errorf("%q: %v", tt.domains, err)
		}
		if err := (Restriction{Referrer: r, UserAgent: UserAgent{true, true}}).Permits(tt.given,
			nil); err == nil != tt.want || err != nil && !fault.Is(err, fault.Denied) {
			t.Errorf("%q of %q (none: %v): %v", tt.given, tt.domains, tt.none, err)
		}
	}
}

func TestUserAgents(t *testing.T) {
	t.Parallel()
	const browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 " +
		"Safari/537.36"
	const apple = "AppleCoreMedia/1.0.0.23A341 (iPhone; U; CPU OS 19_0 like Mac OS X; en_us)"
	for _, tt := range []struct {
		given      []string
		none, risk bool
		want       bool
	}{
		{nil, false, false, false},
		{nil, true, false, true},
		{[]string{""}, false, true, false},
		{[]string{" "}, true, false, true},
		{[]string{browser}, false, false, true},
		{[]string{apple}, false, false, true},
		{[]string{"ExoPlayerLib/2.19"}, false, false, true},
		{[]string{"curl/8.5.0"}, true, false, false},
		{[]string{"CURL/8.5.0"}, true, false, false},
		{[]string{"curl/8.5.0"}, false, true, true},
		{[]string{"Lavf/59.27.100"}, true, false, false},
		{[]string{"yt-dlp/2026"}, true, false, false},
		{[]string{"Wget/1.21"}, true, false, false},
		{[]string{"python-requests/2.31"}, true, false, false},
		{[]string{"Go-http-client/1.1"}, true, false, false},
		{[]string{browser, "curl/8.5.0"}, true, false, false},
		{[]string{browser + " curl/8"}, true, false, false},
	} {
		r := Restriction{
			Referrer: Referrer{AllowNoReferrer: true}, UserAgent: UserAgent{AllowNone: tt.none, AllowHighRisk: tt.risk},
		}
		if err := r.Permits(nil, tt.given); err == nil != tt.want {
			t.Errorf("%q (none: %v, high risk: %v): %v", tt.given, tt.none, tt.risk, err)
		}
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	for domain, fits := range map[string]bool{
		"example.com": true, "EXAMPLE.com": true, "*.example.com": true, "*": true, "localhost": true, "10.0.0.1": true,
		"[2001:db8::1]": true, "a_b.example": true,
		"": false, "*.": false, "*example.com": false, "a.*.com": false, "https://example.com": false,
		"example.com/": false, "example.com:80": false, "*.*": false,
		"exa mple.com": false, ".example.com": false, "example..com": false, "b\u00fccher.example": false,
		strings.Repeat("a", 64) + ".com": false, "fe80::1%eth0": false,
	} {
		r := Referrer{AllowedDomains: []string{domain}}
		if err := r.check(); err == nil != fits {
			t.Errorf("%q: %v", domain, err)
		}
	}
	var many Referrer
	for i := range 10 {
		many.AllowedDomains = append(many.AllowedDomains, fmt.Sprintf("a%d.example.com", i))
	}
	if err := many.check(); err != nil {
		t.Errorf("10 domains: %v", err)
	}
	many.AllowedDomains = append(many.AllowedDomains, "example.com")
	if err := many.check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("11 domains: %v", err)
	}
}

func FuzzReferrer(f *testing.F) {
	f.Add("https://www.example.com/")
	f.Add("https://example.com.evil.test/")
	r := Referrer{AllowedDomains: []string{"example.com", "*.example.com"}}
	f.Fuzz(func(t *testing.T, given string) {
		if r.permits([]string{given}) && !strings.Contains(strings.ToLower(given), "://example.com") &&
			!strings.Contains(strings.ToLower(given), ".example.com") {
			t.Errorf("%q is allowed", given)
		}
	})
}
