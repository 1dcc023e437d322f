package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"millrace/internal/control/access"
	"millrace/internal/control/restriction"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	restrictionsPath = settingsPath + "/restrictions"
	restrictionItem  = restrictionsPath + "/{restriction}"
)

func (s *server) routeRestrictions(mux *http.ServeMux) {
	mux.Handle("GET "+restrictionsPath, s.person("", reads, s.listRestrictions))
	mux.Handle("GET "+restrictionsPath+"/new", s.person("", writes, s.showNewRestriction))
	mux.Handle("POST "+restrictionsPath, s.person("create-playback-restriction", writes, s.createRestriction))
	mux.Handle("POST "+restrictionsPath+"/code", s.person("", writes, s.showRestrictionCode))
	mux.Handle("GET "+restrictionItem, s.person("", writes, s.showRestriction))
	mux.Handle("POST "+restrictionItem, s.person("", writes, s.editRestriction)) // it audits each part
	mux.Handle("POST "+restrictionItem+"/code", s.person("", writes, s.showRestrictionEditCode))
	mux.Handle("GET "+restrictionItem+"/delete", s.person("", writes, s.askDeleteRestriction))
	mux.Handle("POST "+restrictionItem+"/delete",
		s.person("delete-playback-restriction", writes, s.deleteRestriction))
}

// rule is a playback restriction as pages show it.
type rule struct{ restriction.Restriction }

// Address is that of its page.
func (v rule) Address() string { return restrictionsPath + "/" + url.PathEscape(string(v.ID)) }

// Pages says on whose pages something may be watched.
func (v rule) Pages() string {
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

// ruleList is the page of the playback restrictions of the environment.
type ruleList struct {
	finding

	Rows []rule
	May  bool // the person may make, change and delete them
}

// Section is where in the settings the page is.
func (ruleList) Section() string { return "restrictions" }

func (s *server) listRestrictions(w http.ResponseWriter, r *http.Request, p access.Person) {
	l := ruleList{finding: find(r.URL.Query(), restrictionsPath), May: p.Permits(writes)}
	rows, err := paged(&l.finding, func(page, limit int) ([]restriction.Restriction, error) {
		return s.Restrictions.List(r.Context(), p.Environment.ID, page, limit)
	})
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	for _, v := range rows {
		l.Rows = append(l.Rows, rule{v})
	}
	s.render(w, r, p, http.StatusOK, "restrictions", l)
}

// ruleForm is the page on which a playback restriction is made or changed.
type ruleForm struct {
	Of                             *rule // nil: a new one
	Domains                        string
	NoReferrer, NoAgent, Downloads bool
	Code                           code
	said
}

// To is where the form leads.
func (f ruleForm) To() string {
	if f.Of != nil {
		return f.Of.Address()
	}
	return restrictionsPath
}

func (s *server) showNewRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderRule(w, r, p, http.StatusOK, ruleForm{NoAgent: true, Downloads: true}, false) // as the API has it
}

func readRule(r *http.Request) ruleForm {
	return ruleForm{
		Domains: typed(r, "domains"), NoReferrer: ticked(r, "allow_no_referrer"),
		NoAgent: ticked(r, "allow_no_user_agent"), Downloads: ticked(r, "allow_high_risk_user_agent"),
		said: said{fields: []fieldAt{{"referrer.allowed_domains", "domains", "Domains"}}},
	}
}

func (f ruleForm) referrer() restriction.Referrer {
	return restriction.Referrer{AllowedDomains: f.domains(), AllowNoReferrer: f.NoReferrer}
}

func (f ruleForm) agent() restriction.UserAgent {
	return restriction.UserAgent{AllowNone: f.NoAgent, AllowHighRisk: f.Downloads}
}

// otherReferrer reports whether the referrers' part differs from what there is.
func (f ruleForm) otherReferrer() bool {
	now := f.Of.Referrer
	return f.NoReferrer != now.AllowNoReferrer || !slices.Equal(f.domains(), now.AllowedDomains)
}

// otherAgent reports whether the user agents' part differs from what there is.
func (f ruleForm) otherAgent() bool { return f.agent() != f.Of.UserAgent }

// domains are what is typed, with line breaks, spaces or commas between them.
func (f ruleForm) domains() []string {
	return strings.FieldsFunc(f.Domains, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// renderRefused shows the form with what the service says against it, which numbers the domains; people know them by
// what they have typed.
func (s *server) renderRefused(w http.ResponseWriter, r *http.Request, p access.Person, f ruleForm, err error) {
	status, known := f.refused(err)
	if !known {
		s.fail(w, r, p, err)
		return
	}
	if typed, what := f.refusedDomains(fault.ByField(err)); len(typed) > 0 {
		f.Bad["domains"] = strings.Join(typed, ", ") + " " + what + "."
	}
	s.renderRule(w, r, p, status, f, false)
}

// refusedDomains are those as they were typed that messages number, and what is said of each.
func (f ruleForm) refusedDomains(messages []fault.Message) (typed []string, what string) {
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

func (s *server) createRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readRule(r)
	_, err := s.Restrictions.Create(r.Context(), p.Environment.ID, f.referrer(), f.agent(), s.Now())
	if err != nil {
		s.renderRefused(w, r, p, f, err)
		return
	}
	http.Redirect(w, r, restrictionsPath, http.StatusSeeOther)
}

// restrictionOf reads the one that a request names.
func (s *server) restrictionOf(r *http.Request, p access.Person) (rule, error) {
	v, err := s.Restrictions.Get(r.Context(), p.Environment.ID, id.PlaybackRestriction(r.PathValue("restriction")))
	return rule{v}, err
}

// changedRule reads the form that changes the one that a request names, and what somebody else has changed meanwhile.
func (s *server) changedRule(r *http.Request, p access.Person) (f ruleForm, both url.Values, err error) {
	v, err := s.restrictionOf(r, p)
	both = merge(r, ruleFormer(v))
	f = readRule(r)
	f.Of = &v
	return f, both, err
}

func (s *server) showRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.restrictionOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.renderRule(w, r, p, http.StatusOK, ruleForm{
		Of: &v, Domains: strings.Join(v.Referrer.AllowedDomains, "\n"), NoReferrer: v.Referrer.AllowNoReferrer,
		NoAgent: v.UserAgent.AllowNone, Downloads: v.UserAgent.AllowHighRisk,
	}, false)
}

// editRestriction changes those of the two parts that are not as they were, each as an operation of the API.
func (s *server) editRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	f, both, err := s.changedRule(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	if f.overtaken(both) {
		s.renderRule(w, r, p, http.StatusConflict, f, false)
		return
	}
	of := f.Of.ID
	in := func(operation string) context.Context { return s.audited(r, operation, actorOf(p), p.Environment.ID) }
	if f.otherReferrer() {
		_, err = s.Restrictions.SetReferrer(in("update-referrer-domain-restriction"), p.Environment.ID, of,
			f.referrer(), s.Now())
	}
	if err == nil && f.otherAgent() {
		_, err = s.Restrictions.SetUserAgent(in("update-user-agent-restriction"), p.Environment.ID, of, f.agent(),
			s.Now())
	}
	if err != nil {
		s.renderRefused(w, r, p, f, err)
		return
	}
	http.Redirect(w, r, restrictionsPath, http.StatusSeeOther)
}

func (s *server) askDeleteRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.restrictionOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.render(w, r, p, http.StatusOK, "ask", question{
		Heading: "Delete this playback restriction?", Name: string(v.ID), Yes: "Delete", No: "Keep it", Class: "harm",
		ListAddress: restrictionsPath, ListName: "Restrictions", Address: v.Address(), To: v.Address() + "/delete",
		Text: "Tokens that name it are refused at once, also those of people who are watching: they do not become free of " +
			"it. It cannot be brought back. It allows " + v.Pages() + ".",
	})
}

func (s *server) deleteRestriction(w http.ResponseWriter, r *http.Request, p access.Person) {
	of := id.PlaybackRestriction(r.PathValue("restriction"))
	if err := s.Restrictions.Delete(r.Context(), p.Environment.ID, of); err != nil {
		s.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, restrictionsPath, http.StatusSeeOther)
}
