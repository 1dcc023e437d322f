package settings

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"millrace/internal/control/restriction"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

const (
	restrictionItem = shell.RestrictionsPath + "/{restriction}"
)

func (rs *restrictions) routeRestrictions() {
	rs.Handle("GET "+shell.RestrictionsPath, "", shell.Reads, rs.listRestrictions)
	rs.Handle("GET "+shell.RestrictionsPath+"/new", "", shell.Writes, rs.showNewRestriction)
	rs.Handle("POST "+shell.RestrictionsPath, "create-playback-restriction", shell.Writes, rs.createRestriction)
	rs.Handle("POST "+shell.RestrictionsPath+"/code", "", shell.Writes, rs.showRestrictionCode)
	rs.Handle("GET "+restrictionItem, "", shell.Writes, shell.With(rs.restrictionOf, rs.showRestriction))
	rs.Handle("POST "+restrictionItem, "", shell.Writes, rs.editRestriction) // it audits each part
	rs.Handle("POST "+restrictionItem+"/code", "", shell.Writes, rs.showRestrictionEditCode)
	rs.Handle("GET "+restrictionItem+"/delete", "", shell.Writes, shell.With(rs.restrictionOf, rs.askDeleteRestriction))
	rs.Handle("POST "+restrictionItem+"/delete", "delete-playback-restriction", shell.Writes, rs.deleteRestriction)
}

// Restriction is a playback restriction as pages show it.
type Restriction struct{ restriction.Restriction }

// Address is that of its page.
func (r Restriction) Address() string {
	return shell.RestrictionsPath + "/" + url.PathEscape(string(r.ID))
}

// Pages says on whose pages something may be watched.
func (r Restriction) Pages() string {
	const most = 3 // that are named
	d := r.Referrer.AllowedDomains
	switch {
	case slices.Contains(d, "*"):
		return "every domain"
	case len(d) == 0:
		return "no domain"
	case len(d) > most:
		return strings.Join(d[:most], ", ") + " and " + strconv.Itoa(len(d)-most) + " more"
	}
	return strings.Join(d, ", ")
}

// restrictionList is the page of the playback restrictions of the environment.
type restrictionList struct {
	shell.Selection

	Rows []Restriction
	May  bool // the person may make, change and delete them
}

// Section is where in the settings the page is.
func (restrictionList) Section() string { return "restrictions" }

func (rs *restrictions) listRestrictions(r *shell.Request) (shell.View, error) {
	l := restrictionList{
		Selection: shell.Select(r.URL.Query(), shell.RestrictionsPath),
		May:       r.Person.Permits(shell.Writes),
	}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]restriction.Restriction, error) {
		return rs.Restrictions.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	l.Rows = shell.Each(rows, func(v restriction.Restriction) Restriction { return Restriction{v} })
	return shell.Show("restrictions", l), err
}

// restrictionForm is the page on which a playback restriction is made or changed.
type restrictionForm struct {
	Of                             *Restriction // nil: a new one
	Domains                        string
	NoReferrer, NoAgent, Downloads bool
	Code                           shell.Code
	shell.FormErrors
}

// To is where the form leads.
func (rf restrictionForm) To() string {
	if rf.Of != nil {
		return rf.Of.Address()
	}
	return shell.RestrictionsPath
}

func (rs *restrictions) showNewRestriction(_ *shell.Request) (shell.View, error) {
	// as the API has it
	return rs.renderForm(http.StatusOK, restrictionForm{NoAgent: true, Downloads: true}, false), nil
}

func readRestriction(r *shell.Request) restrictionForm {
	return restrictionForm{
		Domains: r.Text("domains"), NoReferrer: r.Ticked("allow_no_referrer"),
		NoAgent: r.Ticked("allow_no_user_agent"), Downloads: r.Ticked("allow_high_risk_user_agent"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{shell.At("referrer.allowed_domains", "domains", "Domains")}},
	}
}

func (rf restrictionForm) referrer() restriction.Referrer {
	return restriction.Referrer{AllowedDomains: rf.domains(), AllowNoReferrer: rf.NoReferrer}
}

func (rf restrictionForm) agent() restriction.UserAgent {
	return restriction.UserAgent{AllowNone: rf.NoAgent, AllowHighRisk: rf.Downloads}
}

// otherReferrer reports whether the referrers' part differs from what there is.
func (rf restrictionForm) otherReferrer() bool {
	now := rf.Of.Referrer
	return rf.NoReferrer != now.AllowNoReferrer || !slices.Equal(rf.domains(), now.AllowedDomains)
}

// otherAgent reports whether the user agents' part differs from what there is.
func (rf restrictionForm) otherAgent() bool { return rf.agent() != rf.Of.UserAgent }

// domains are what is typed, with line breaks, spaces or commas between them.
func (rf restrictionForm) domains() []string {
	return strings.FieldsFunc(rf.Domains, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// renderRefused shows the form with what the service says against it, which numbers the domains; people know them by
// what they have typed.
func (rs *restrictions) renderRefused(f restrictionForm, err error) (shell.View, error) {
	status, other := f.TakeErr(err)
	if other != nil {
		return shell.View{}, other
	}
	if typed, what := f.refusedDomains(fault.ByField(err)); len(typed) > 0 {
		f.Bad["domains"] = strings.Join(typed, ", ") + " " + what + "."
	}
	return rs.renderForm(status, f, false), nil
}

// refusedDomains are those as they were typed that messages number, and what is said of each.
func (rf restrictionForm) refusedDomains(messages []fault.Message) (typed []string, what string) {
	domains := rf.domains()
	for _, m := range messages {
		var i int
		_, err := fmt.Sscanf(m.Path, "referrer.allowed_domains[%d]", &i)
		if err == nil && i < len(domains) {
			typed, what = append(typed, "“"+domains[i]+"”"), m.Text
		}
	}
	return typed, what
}

func (rs *restrictions) createRestriction(r *shell.Request) (shell.View, error) {
	f := readRestriction(r)
	_, err := rs.Restrictions.Create(r.Context(), r.Person.Environment.ID, f.referrer(), f.agent(), rs.Now())
	if err != nil {
		return rs.renderRefused(f, err)
	}
	return shell.Redirect(shell.RestrictionsPath), nil
}

// restrictionOf reads the one that a request names.
func (rs *restrictions) restrictionOf(r *shell.Request) (Restriction, error) {
	v, err := rs.Restrictions.Get(r.Context(), r.Person.Environment.ID,
		id.PlaybackRestriction(r.PathValue("restriction")))
	return Restriction{v}, err
}

// changedForm reads the form that changes the one that a request names, and what somebody else has changed meanwhile.
func (rs *restrictions) changedForm(r *shell.Request) (f restrictionForm, both url.Values, err error) {
	v, err := rs.restrictionOf(r)
	both = r.Merge(former(v))
	f = readRestriction(r)
	f.Of = &v
	return f, both, err
}

func (rs *restrictions) showRestriction(_ *shell.Request, v Restriction) (shell.View, error) {
	return rs.renderForm(http.StatusOK, restrictionForm{
		Of: &v, Domains: strings.Join(v.Referrer.AllowedDomains, "\n"), NoReferrer: v.Referrer.AllowNoReferrer,
		NoAgent: v.UserAgent.AllowNone, Downloads: v.UserAgent.AllowHighRisk,
	}, false), nil
}

// editRestriction changes those of the two parts that are not as they were, each as an operation of the API.
func (rs *restrictions) editRestriction(r *shell.Request) (shell.View, error) {
	f, both, err := rs.changedForm(r)
	if err != nil {
		return shell.View{}, err
	}
	if f.Overtaken(both) {
		return rs.renderForm(http.StatusConflict, f, false), nil
	}
	of := f.Of.ID
	in := func(operation string) context.Context {
		return rs.Audited(r.Request, operation, shell.ActorOf(r.Person), r.Person.Environment.ID)
	}
	if f.otherReferrer() {
		_, err = rs.Restrictions.SetReferrer(in("update-referrer-domain-restriction"), r.Person.Environment.ID, of,
			f.referrer(), rs.Now())
	}
	if err == nil && f.otherAgent() {
		_, err = rs.Restrictions.SetUserAgent(in("update-user-agent-restriction"), r.Person.Environment.ID, of,
			f.agent(),
			rs.Now())
	}
	if err != nil {
		return rs.renderRefused(f, err)
	}
	return shell.Redirect(shell.RestrictionsPath), nil
}

func (rs *restrictions) askDeleteRestriction(_ *shell.Request, v Restriction) (shell.View, error) {
	return shell.Show("ask", shell.Question{
		Heading:     "Delete this playback restriction?",
		Name:        string(v.ID),
		Yes:         "Delete",
		No:          "Keep it",
		Class:       "harm",
		ListAddress: shell.RestrictionsPath,
		ListName:    "Restrictions",
		Address:     v.Address(),
		To:          v.Address() + "/delete",
		Text: "Tokens that name it are refused at once, also those of people who are watching: they do not become " +
			"free of " +
			"it. It cannot be brought back. It allows " + v.Pages() + ".",
	}), nil
}

func (rs *restrictions) deleteRestriction(r *shell.Request) (shell.View, error) {
	of := id.PlaybackRestriction(r.PathValue("restriction"))
	err := rs.Restrictions.Delete(r.Context(), r.Person.Environment.ID, of)
	return shell.Redirect(shell.RestrictionsPath), err
}

// Former is likewise for a playback restriction.
func (r Restriction) Former() string { return former(r).Encode() }

// former is a playback restriction as the form that changes it sends it.
func former(v Restriction) url.Values {
	out := url.Values{"domains": {strings.Join(v.Referrer.AllowedDomains, "\n")}}
	for name, on := range map[string]bool{
		"allow_no_referrer": v.Referrer.AllowNoReferrer, "allow_no_user_agent": v.UserAgent.AllowNone,
		"allow_high_risk_user_agent": v.UserAgent.AllowHighRisk,
	} {
		if on {
			out.Set(name, "1")
		}
	}
	return out
}

func (rs *restrictions) showRestrictionCode(r *shell.Request) (shell.View, error) {
	return rs.renderForm(http.StatusOK, readRestriction(r), !r.Resumed()), nil
}

func (rs *restrictions) showRestrictionEditCode(r *shell.Request) (shell.View, error) {
	f, both, err := rs.changedForm(r)
	if err != nil {
		return shell.View{}, err
	}
	f.Overtaken(both)
	return rs.renderForm(http.StatusOK, f, !r.Resumed()), nil
}

// renderForm shows the form of a playback restriction, with its code.
func (rs *restrictions) renderForm(
	status int, f restrictionForm, open bool,
) shell.View {
	if f.Of != nil {
		f.Code = rs.Code("make", f.Of.Address()+"/code", f.changes()...)
	} else {
		f.Code = rs.Code("make", shell.RestrictionsPath+"/code", sdkcode.Request{
			Path: "/video/v1/playback-restrictions", Body: f.body(), Node: "video.playbackRestrictions.create",
			Go:     "PlaybackRestrictionsApi.CreatePlaybackRestriction",
			GoType: "mux.CreatePlaybackRestrictionRequest",
		})
	}
	f.Code.Open = open
	return shell.ShowAs(status, "restriction", f)
}

// changes are the requests for what differs from what there is: each part has one of its own.
func (rf restrictionForm) changes() (c []sdkcode.Request) {
	of := []string{string(rf.Of.ID)}
	path := "/video/v1/playback-restrictions/" + url.PathEscape(of[0])
	if rf.otherReferrer() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/referrer", IDs: of, Body: rf.referrerBody(),
			Node:   "video.playbackRestrictions.updateReferrer",
			Go:     "PlaybackRestrictionsApi.UpdateReferrerDomainRestriction",
			GoType: "mux.UpdateReferrerDomainRestrictionRequest",
		})
	}
	if rf.otherAgent() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/user_agent", IDs: of, Body: rf.agentBody(),
			Node:   "video.playbackRestrictions.updateUserAgent",
			Go:     "PlaybackRestrictionsApi.UpdateUserAgentRestriction",
			GoType: "mux.UpdateUserAgentRestrictionRequest",
		})
	}
	return c
}

// body is what the API would be sent for a new one.
func (rf restrictionForm) body() sdkcode.Object {
	return sdkcode.Object{}.Set("referrer", rf.referrerBody()).Set("user_agent", rf.agentBody())
}

func (rf restrictionForm) referrerBody() sdkcode.Object {
	return sdkcode.Object{}.Set("allowed_domains", rf.domains()).With("allow_no_referrer", rf.NoReferrer)
}

// agentBody has all of it: what is left out counts as allowed.
func (rf restrictionForm) agentBody() sdkcode.Object {
	agent := rf.agent()
	return sdkcode.Object{}.Set("allow_no_user_agent", agent.AllowNone).
		Set("allow_high_risk_user_agent", agent.AllowHighRisk)
}
