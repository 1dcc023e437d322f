package settings

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/retention"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const retentionPath = shell.SettingsPath + "/retention"

func (rm *room) routeRetention() {
	rm.Handle("GET "+retentionPath, "", shell.Owns, rm.showRetention)
	rm.Handle("POST "+retentionPath, "set-retention", shell.Owns, rm.setRetention)
	rm.Handle("POST "+retentionPath+"/off", "delete-retention", shell.Owns, rm.turnRetentionOff)
	rm.Handle("POST "+retentionPath+"/exempt/{asset}", "exempt-asset", shell.Owns, rm.exemptAsset)
}

// retentionForm is what is typed: days, GB and hours.
type retentionForm struct {
	Days, GB, Hours string
	shell.FormErrors
}

func readRetention(typed url.Values) retentionForm {
	text := func(name string) string { return strings.ToValidUTF8(strings.TrimSpace(typed.Get(name)), "\uFFFD") }
	return retentionForm{
		Days: text("max_age_days"), GB: text("max_gb"), Hours: text("grace_hours"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("max_age_days", "max_age_days", "Days"), shell.At("max_bytes", "max_gb", "GB"),
			shell.At("grace_hours", "grace_hours", "Hours"),
		}},
	}
}

const gigabyte = 1e9

// limits are what the form asks for; what can't be is left to the service to refuse.
func (rf *retentionForm) limits() (l retention.Limits, grace time.Duration) {
	if n, given := rf.Number("max_age_days", rf.Days, "a number of days"); given {
		if l.MaxAgeDays = int64(n); l.MaxAgeDays == 0 || n != math.Trunc(n) {
			l.MaxAgeDays = -1
		}
	}
	if n, given := rf.Number("max_gb", rf.GB, "a number"); given {
		if l.MaxBytes = int64(n * gigabyte); l.MaxBytes == 0 {
			l.MaxBytes = -1
		}
	}
	if n, given := rf.Number("grace_hours", rf.Hours, "a number of hours"); given {
		if grace = time.Duration(n * float64(time.Hour)); grace == 0 {
			grace = -1
		}
	}
	return l, grace
}

// retentionPage is the page of an environment's retention: the policy, and what it or another one deletes.
type retentionPage struct {
	retentionForm

	Policy  retention.Policy
	Preview *retention.Preview // nil: there is nothing to show
	Asked   bool               // the preview is of what was typed, and waits to be set
}

// Section is where in the settings the page is.
func (retentionPage) Section() string { return "retention" }

// Size is a number of bytes for people.
func (retentionPage) Size(n int64) string { return sizeText(n) }

// More is how many assets the preview does not name.
func (rp retentionPage) More() int { return rp.Preview.Count - len(rp.Preview.First) }

func sizeText(n int64) string {
	for _, u := range []struct {
		bytes float64
		name  string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if float64(n) >= u.bytes {
			return strconv.FormatFloat(float64(n)/u.bytes, 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// showRetention shows the policy; with limits in the address, what these would delete.
func (rm *room) showRetention(r *shell.Request) (shell.View, error) {
	policy, err := rm.Retention.Policy(r.Context(), r.Person.Environment.ID)
	if err != nil {
		return shell.View{}, err
	}
	p := retentionPage{retentionForm: readRetention(r.URL.Query()), Policy: policy}
	l, grace := policy.Limits, time.Duration(0)
	switch {
	case r.URL.RawQuery != "":
		p.Asked = true
		l, grace = p.limits()
	case policy.On():
		if policy.MaxAgeDays > 0 {
			p.Days = strconv.FormatInt(policy.MaxAgeDays, 10)
		}
		if policy.MaxBytes > 0 {
			p.GB = strconv.FormatFloat(float64(policy.MaxBytes)/gigabyte, 'f', -1, 64)
		}
	default:
		return shell.Show("retention", p), nil
	}
	if len(p.Bad) > 0 {
		return shell.ShowAs(http.StatusBadRequest, "retention", p), nil
	}
	if err = l.Check(); err != nil {
		status, other := p.TakeErr(err)
		return shell.ShowAs(status, "retention", p), other
	}
	found, err := rm.Retention.Preview(r.Context(), r.Person.Environment.ID, l, grace)
	if err != nil {
		status, other := p.TakeErr(err)
		return shell.ShowAs(status, "retention", p), other
	}
	p.Preview = &found
	return shell.Show("retention", p), nil
}

// setRetention sets what was typed and shown before.
func (rm *room) setRetention(r *shell.Request) (shell.View, error) {
	if err := r.ParseForm(); err != nil {
		return shell.View{}, shell.ErrNothing
	}
	policy, err := rm.Retention.Policy(r.Context(), r.Person.Environment.ID)
	if err != nil {
		return shell.View{}, err
	}
	p := retentionPage{retentionForm: readRetention(r.PostForm), Policy: policy}
	l, grace := p.limits()
	if len(p.Bad) > 0 {
		return shell.ShowAs(http.StatusBadRequest, "retention", p), nil
	}
	if _, err := rm.Retention.Set(r.Context(), r.Person.Environment.ID, l, grace); err != nil {
		status, other := p.TakeErr(err)
		return shell.ShowAs(status, "retention", p), other
	}
	return shell.Redirect(retentionPath), nil
}

func (rm *room) turnRetentionOff(r *shell.Request) (shell.View, error) {
	return shell.Redirect(retentionPath), rm.Retention.TurnOff(r.Context(), r.Person.Environment.ID)
}

// exemptAsset exempts one that the preview names, and shows the same preview again.
func (rm *room) exemptAsset(r *shell.Request) (shell.View, error) {
	err := rm.Assets.SetExempt(r.Context(), r.Person.Environment.ID, id.Asset(r.PathValue("asset")), true, rm.Now())
	to := retentionPath
	if q := (url.Values{
		"max_age_days": {r.Text("max_age_days")}, "max_gb": {r.Text("max_gb")}, "grace_hours": {r.Text("grace_hours")},
	}); r.Ticked("asked") {
		to += "?" + q.Encode()
	}
	return shell.Redirect(to), err
}
