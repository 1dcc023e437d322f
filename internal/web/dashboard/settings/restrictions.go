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

func (s *restrictions) routeRestrictions() {
	s.Handle("GET "+shell.RestrictionsPath, "", shell.Reads, s.listRestrictions)
	s.Handle("GET "+shell.RestrictionsPath+"/new", "", shell.Writes, s.showNewRestriction)
	s.Handle("POST "+shell.RestrictionsPath, "create-playback-restriction", shell.Writes, s.createRestriction)
	s.Handle("POST "+shell.RestrictionsPath+"/code", "", shell.Writes, s.showRestrictionCode)
	s.Handle("GET "+restrictionItem, "", shell.Writes, shell.With(s.restrictionOf, s.showRestriction))
	s.Handle("POST "+restrictionItem, "", shell.Writes, s.editRestriction) // it audits each part
	s.Handle("POST "+restrictionItem+"/code", "", shell.Writes, s.showRestrictionEditCode)
	s.Handle("GET "+restrictionItem+"/delete", "", shell.Writes, shell.With(s.restrictionOf, s.askDeleteRestriction))
	s.Handle("POST "+restrictionItem+"/delete", "delete-playback-restriction", shell.Writes, s.deleteRestriction)
}

// Restriction is a playback restriction as pages show it.
type Restriction struct{ restriction.Restriction }

// Address is that of its page.
func (v Restriction) Address() string {
	return shell.RestrictionsPath + "/" + url.PathEscape(string(v.ID))
}

// Pages says on whose pages something may be watched.
func (v Restriction) Pages() string {
	const most = 3 // that are named
	d := v.Referrer.AllowedDomains
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

func (s *restrictions) listRestrictions(r *shell.Request) (shell.View, error) {
	l := restrictionList{Selection: shell.Select(r.URL.Query(), shell.RestrictionsPath), May: r.Person.Permits(shell.Writes)}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]restriction.Restriction, error) {
		return s.Restrictions.List(r.Context(), r.Person.Environment.ID, page, limit)
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
func (f restrictionForm) To() string {
	if f.Of != nil {
		return f.Of.Address()
	}
	return shell.RestrictionsPath
}

func (s *restrictions) showNewRestriction(_ *shell.Request) (shell.View, error) {
	return s.renderForm(http.StatusOK, restrictionForm{NoAgent: true, Downloads: true}, false), nil // as the API has it
}

func readRestriction(r *shell.Request) restrictionForm {
	return restrictionForm{
		Domains: r.Text("domains"), NoReferrer: r.Ticked("allow_no_referrer"),
		NoAgent: r.Ticked("allow_no_user_agent"), Downloads: r.Ticked("allow_high_risk_user_agent"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{shell.At("referrer.allowed_domains", "domains", "Domains")}},
	}
}

func (f restrictionForm) referrer() restriction.Referrer {
	return restriction.Referrer{AllowedDomains: f.domains(), AllowNoReferrer: f.NoReferrer}
}

func (f restrictionForm) agent() restriction.UserAgent {
	return restriction.UserAgent{AllowNone: f.NoAgent, AllowHighRisk: f.Downloads}
}

// otherReferrer reports whether the referrers' part differs from what there is.
func (f restrictionForm) otherReferrer() bool {
	now := f.Of.Referrer
	return f.NoReferrer != now.AllowNoReferrer || !slices.Equal(f.domains(), now.AllowedDomains)
}

// otherAgent reports whether the user agents' part differs from what there is.
func (f restrictionForm) otherAgent() bool { return f.agent() != f.Of.UserAgent }

// domains are what is typed, with line breaks, spaces or commas between them.
func (f restrictionForm) domains() []string {
	return strings.FieldsFunc(f.Domains, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// renderRefused shows the form with what the service says against it, which numbers the domains; people know them by
// what they have typed.
func (s *restrictions) renderRefused(f restrictionForm, err error) (shell.View, error) {
	status, other := f.TakeErr(err)
	if other != nil {
		return shell.View{}, other
	}
	if typed, what := f.refusedDomains(fault.ByField(err)); len(typed) > 0 {
		f.Bad["domains"] = strings.Join(typed, ", ") + " " + what + "."
	}
	return s.renderForm(status, f, false), nil
}

// refusedDomains are those as they were typed that messages number, and what is said of each.
func (f restrictionForm) refusedDomains(messages []fault.Message) (typed []string, what string) {
	domains := f.domains()
	for _, m := range messages {
		var i int
		_, err := fmt.Sscanf(m.Path, "referrer.allowed_domains[%d]", &i)
		if err == nil && i < len(domains) {
			typed, what = append(typed, "“"+domains[i]+"”"), m.Text
		}
	}
	return typed, what
}

func (s *restrictions) createRestriction(r *shell.Request) (shell.View, error) {
	f := readRestriction(r)
	_, err := s.Restrictions.Create(r.Context(), r.Person.Environment.ID, f.referrer(), f.agent(), s.Now())
	if err != nil {
		return s.renderRefused(f, err)
	}
	return shell.Redirect(shell.RestrictionsPath), nil
}

// restrictionOf reads the one that a request names.
func (s *restrictions) restrictionOf(r *shell.Request) (Restriction, error) {
	v, err := s.Restrictions.Get(r.Context(), r.Person.Environment.ID, id.PlaybackRestriction(r.PathValue("restriction")))
	return Restriction{v}, err
}

// changedForm reads the form that changes the one that a request names, and what somebody else has changed meanwhile.
func (s *restrictions) changedForm(r *shell.Request) (f restrictionForm, both url.Values, err error) {
	v, err := s.restrictionOf(r)
	both = r.Merge(former(v))
	f = readRestriction(r)
	f.Of = &v
	return f, both, err
}

func (s *restrictions) showRestriction(_ *shell.Request, v Restriction) (shell.View, error) {
	return s.renderForm(http.StatusOK, restrictionForm{
		Of: &v, Domains: strings.Join(v.Referrer.AllowedDomains, "\n"), NoReferrer: v.Referrer.AllowNoReferrer,
		NoAgent: v.UserAgent.AllowNone, Downloads: v.UserAgent.AllowHighRisk,
	}, false), nil
}

// editRestriction changes those of the two parts that are not as they were, each as an operation of the API.
func (s *restrictions) editRestriction(r *shell.Request) (shell.View, error) {
	f, both, err := s.changedForm(r)
	if err != nil {
		return shell.View{}, err
	}
	if f.Overtaken(both) {
		return s.renderForm(http.StatusConflict, f, false), nil
	}
	of := f.Of.ID
	in := func(operation string) context.Context {
		return s.Audited(r.Request, operation, shell.ActorOf(r.Person), r.Person.Environment.ID)
	}
	if f.otherReferrer() {
		_, err = s.Restrictions.SetReferrer(in("update-referrer-domain-restriction"), r.Person.Environment.ID, of,
			f.referrer(), s.Now())
	}
	if err == nil && f.otherAgent() {
		_, err = s.Restrictions.SetUserAgent(in("update-user-agent-restriction"), r.Person.Environment.ID, of, f.agent(),
			s.Now())
	}
	if err != nil {
		return s.renderRefused(f, err)
	}
	return shell.Redirect(shell.RestrictionsPath), nil
}

func (s *restrictions) askDeleteRestriction(_ *shell.Request, v Restriction) (shell.View, error) {
	return shell.Show("ask", shell.Question{
		Heading: "Delete this playback restriction?", Name: string(v.ID), Yes: "Delete", No: "Keep it", Class: "harm",
		ListAddress: shell.RestrictionsPath, ListName: "Restrictions", Address: v.Address(), To: v.Address() + "/delete",
		Text: "Tokens that name it are refused at once, also those of people who are watching: they do not become free of " +
			"it. It cannot be brought back. It allows " + v.Pages() + ".",
	}), nil
}

func (s *restrictions) deleteRestriction(r *shell.Request) (shell.View, error) {
	of := id.PlaybackRestriction(r.PathValue("restriction"))
	err := s.Restrictions.Delete(r.Context(), r.Person.Environment.ID, of)
	return shell.Redirect(shell.RestrictionsPath), err
}

// Former is likewise for a playback restriction.
func (v Restriction) Former() string { return former(v).Encode() }

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

func (s *restrictions) showRestrictionCode(r *shell.Request) (shell.View, error) {
	return s.renderForm(http.StatusOK, readRestriction(r), !r.Resumed()), nil
}

func (s *restrictions) showRestrictionEditCode(r *shell.Request) (shell.View, error) {
	f, both, err := s.changedForm(r)
	if err != nil {
		return shell.View{}, err
	}
	f.Overtaken(both)
	return s.renderForm(http.StatusOK, f, !r.Resumed()), nil
}

// renderForm shows the form of a playback restriction, with its code.
func (s *restrictions) renderForm(
	status int, f restrictionForm, open bool,
) shell.View {
	if f.Of != nil {
		f.Code = s.Code("make", f.Of.Address()+"/code", f.changes()...)
	} else {
		f.Code = s.Code("make", shell.RestrictionsPath+"/code", sdkcode.Request{
			Path: "/video/v1/playback-restrictions", Body: f.body(), Node: "video.playbackRestrictions.create",
			Go:     "PlaybackRestrictionsApi.CreatePlaybackRestriction",
			GoType: "mux.CreatePlaybackRestrictionRequest",
		})
	}
	f.Code.Open = open
	return shell.ShowAs(status, "restriction", f)
}

// changes are the requests for what differs from what there is: each part has one of its own.
func (f restrictionForm) changes() (c []sdkcode.Request) {
	of := []string{string(f.Of.ID)}
	path := "/video/v1/playback-restrictions/" + url.PathEscape(of[0])
	if f.otherReferrer() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/referrer", IDs: of, Body: f.referrerBody(),
			Node:   "video.playbackRestrictions.updateReferrer",
			Go:     "PlaybackRestrictionsApi.UpdateReferrerDomainRestriction",
			GoType: "mux.UpdateReferrerDomainRestrictionRequest",
		})
	}
	if f.otherAgent() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/user_agent", IDs: of, Body: f.agentBody(),
			Node:   "video.playbackRestrictions.updateUserAgent",
			Go:     "PlaybackRestrictionsApi.UpdateUserAgentRestriction",
			GoType: "mux.UpdateUserAgentRestrictionRequest",
		})
	}
	return c
}

// body is what the API would be sent for a new one.
func (f restrictionForm) body() sdkcode.Object {
	return sdkcode.Object{}.Set("referrer", f.referrerBody()).Set("user_agent", f.agentBody())
}

func (f restrictionForm) referrerBody() sdkcode.Object {
	return sdkcode.Object{}.Set("allowed_domains", f.domains()).With("allow_no_referrer", f.NoReferrer)
}

// agentBody has all of it: what is left out counts as allowed.
func (f restrictionForm) agentBody() sdkcode.Object {
	agent := f.agent()
	return sdkcode.Object{}.Set("allow_no_user_agent", agent.AllowNone).
		Set("allow_high_risk_user_agent", agent.AllowHighRisk)
}
