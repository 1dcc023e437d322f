package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audit"
	"millrace/internal/control/retention"
	"millrace/internal/id"
	"millrace/internal/storage/db"
)

// clocked has a database whose clock is that of the site.
type clocked struct {
	retention.Store

	now func() time.Time
}

func (c clocked) Now(context.Context) (time.Time, error) { return c.now(), nil }

const retentionPage = "/dashboard/settings/retention"

// TestRetention: what would be deleted is shown before anything is set, and what was shown is what is set.
func TestRetention(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	env := s.env(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, days := range map[string]int{"old": 100, "young": 3} {
		at := s.now.AddDate(0, 0, -days)
		must(s.db.Assets().Insert(t.Context(), asset.Change{Asset: asset.Asset{
			ID: id.Asset(name), Environment: env, Status: asset.Ready, Index: "i", Media: id.Media("m-" + name),
			CreatedAt: at, UpdatedAt: at, Options: assetopt.Options{Meta: assetopt.Meta{Title: hostile}},
		}}))
	}
	must(db.Retention(s.db).SetSizes(t.Context(), []retention.Sized{{Media: "m-old", Bytes: 5e9, At: s.now}}))
	policy := func(want retention.Limits) {
		t.Helper()
		p, err := db.Retention(s.db).Policy(t.Context(), env)
		if err != nil || p.Limits != want {
			t.Errorf("the policy is %+v, %v", p, err)
		}
	}
	show := func(path, want, not string) {
		t.Helper()
		s.shows(t, s.cookie, path, nil, http.StatusOK, want, not)
	}
	show(retentionPage, "off: nothing is deleted automatically", "What will be deleted")
	const asked = retentionPage + "?max_age_days=90&max_gb=&grace_hours=5"
	show(asked, "1 asset, 5.0 GB of 5.0 GB stored", `href="/dashboard/assets/young"`)
	show(asked, `href="/dashboard/assets/old"`, "<script>alert")
	show(asked, `<input type="hidden" name="max_age_days" value="90">`, "Turn retention off")
	show(asked, "1 asset is not measured yet", "")
	show(asked, "Turn retention on</button>", "Turn retention off")
	policy(retention.Limits{})
	for query, want := range map[string]string{
		"max_age_days=x":               "This must be a number of days.",
		"max_age_days=1.5":             "must be from 1 to 36500",
		"max_age_days=1e99":            "must be from 1 to 36500",
		"max_age_days=0":               "must be from 1 to 36500",
		"max_gb=0.0001":                "must be from 1048576",
		"max_gb=":                      "must be given",
		"max_age_days=1&grace_hours=0": "must be from 1 to 2160",
	} {
		s.shows(t, s.cookie, retentionPage+"?"+query, nil, http.StatusBadRequest, want, "Turn retention on")
	}
	send := func(path string, form url.Values, status int) http.Header {
		t.Helper()
		w := s.ask(t, s.cookie, path, form)
		if w.Code != status {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
		return w.Header()
	}
	send(retentionPage, url.Values{"max_age_days": {"none"}}, http.StatusBadRequest)
	send(retentionPage, url.Values{}, http.StatusBadRequest)
	policy(retention.Limits{})
	form := url.Values{"max_age_days": {"90"}, "max_gb": {"1,5"}, "grace_hours": {"5"}}
	send(retentionPage, form, http.StatusSeeOther)
	policy(retention.Limits{MaxAgeDays: 90, MaxBytes: 15e8})
	show(retentionPage, "All assets together may take 1.5 GB.", "Turn retention on")
	show(retentionPage, `name="max_age_days" class="mono" value="90"`, "")

	s.now = s.now.Add(time.Minute) // the audit log is in the order of its times
	back := send(retentionPage+"/exempt/old", url.Values{"asked": {"1"}, "max_age_days": {"90"}}, http.StatusSeeOther)
	if to := back.Get("Location"); to != retentionPage+"?grace_hours=&max_age_days=90&max_gb=" {
		t.Errorf("to %s", to)
	}
	show(retentionPage, "0 assets, 0 bytes of 5.0 GB stored", `href="/dashboard/assets/old"`)
	send(retentionPage+"/exempt/none", url.Values{}, http.StatusNotFound)
	s.now = s.now.Add(6 * time.Hour)
	show(retentionPage, "Assets beyond these limits are deleted.", "Nothing is deleted before")
	send(retentionPage+"/off", url.Values{}, http.StatusSeeOther)
	policy(retention.Limits{})

	log, err := s.db.AuditLog(t.Context(), audit.Query{Environment: env, Limit: 9})
	if err != nil || len(log) < 3 || log[0].Operation != "delete-retention" || log[1].Operation != "exempt-asset" ||
		log[1].Resource.ID != "old" || log[2].Operation != "set-retention" || log[2].Actor.Type != audit.Dashboard {
		t.Errorf("audit log %+v, %v", log, err)
	}
	guest := s.signIn(t, access.Permissions()...)
	for _, path := range []string{"", "/off", "/exempt/old"} {
		w := s.ask(t, guest, retentionPage+path, url.Values{"max_age_days": {"90"}})
		if w.Code != http.StatusForbidden {
			t.Errorf("%s for who is not the owner: %d", path, w.Code)
		}
	}
}
