package settings

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

func (ts *tokens) routeTokens() {
	ts.Handle("GET "+shell.TokensPath, "", access.SystemRead, ts.listTokens)
	ts.Handle("GET "+shell.TokensPath+"/new", "", access.SystemWrite, ts.showNewToken)
	ts.Handle("POST "+shell.TokensPath, "create-access-token", access.SystemWrite, ts.createToken)
	ts.Handle("POST "+shell.TokensPath+"/code", "", access.SystemWrite, ts.showTokenCode)
	ts.Handle("GET "+shell.TokensPath+"/{token}/revoke", "", access.SystemWrite, shell.With(ts.tokenOf, ts.askRevoke))
	ts.Handle("POST "+shell.TokensPath+"/{token}/revoke", "delete-access-token", access.SystemWrite, ts.revoke)
}

// token is an access token as pages show it.
type token struct {
	access.Token

	Own bool // the person is signed in with it
	Now time.Time
}

// Revoke is the address that asks before.
func (t token) Revoke() string {
	return shell.TokensPath + "/" + url.PathEscape(string(t.ID)) + "/revoke"
}

// Everything reports whether it may do all that there is in its environment.
func (t token) Everything() bool { return len(t.Permissions) == len(access.Permissions()) }

// Expired reports whether its time is over.
func (t token) Expired() bool { return !t.ExpiresAt.IsZero() && !t.Now.Before(t.ExpiresAt) }

func (ts *tokens) token(p access.Person, t access.Token) token {
	return token{t, p.Session.Token == t.ID, ts.Now()}
}

// tokenList is the page of the tokens of the environment.
type tokenList struct {
	shell.Selection

	Rows []token
	May  bool // the person may make and revoke them
}

// Section is where in the settings the page is.
func (tokenList) Section() string { return "tokens" }

func (ts *tokens) listTokens(r *shell.Request) (shell.View, error) {
	l := tokenList{Selection: shell.Select(r.URL.Query(), shell.TokensPath), May: r.Person.Permits(access.SystemWrite)}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]access.Token, error) {
		return ts.Access.TokensOf(r.Context(), r.Person.Environment.ID, page, limit)
	})
	l.Rows = shell.Each(rows, func(t access.Token) token { return ts.token(r.Person, t) })
	return shell.Show("tokens", l), err
}

// tokenForm is the page on which a token is made: what was chosen, and what is wrong with it.
type tokenForm struct {
	Name string
	Days string // until it expires; empty: never
	May  []permission
	Code shell.Code
	shell.FormErrors
}

func readToken(r *shell.Request) tokenForm {
	return tokenForm{
		Name: r.Text("name"), Days: r.Text("days"), May: permissionsOf(r.Person, r.PostForm["permission"]...),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("name", "name", "Name"), shell.At("permissions", "permission", "Permissions"),
			shell.At("expires_at", "days", "Expires"),
		}},
	}
}

// permissions are the names of those that are ticked.
func (t tokenForm) permissions() (names []string) {
	for _, v := range t.May {
		if v.Ticked {
			names = append(names, v.Name)
		}
	}
	return names
}

// permission is one that a token may get.
type permission struct {
	Name, What string
	Ticked     bool
}

// permissionsOf are those that a person has, and so may give.
func permissionsOf(p access.Person, ticked ...string) []permission {
	var all []permission
	for _, v := range []permission{
		{access.VideoRead, "See live streams, with their keys, assets and uploads.", false},
		{access.VideoWrite, "Create, change and delete them.", false},
		{access.SystemRead, "See webhooks, events, access tokens and the audit log.", false},
		{access.SystemWrite, "Create and delete webhooks, signing keys and access tokens.", false},
		{access.DataRead, "No effect yet; some client libraries request it.", false},
		{access.DataWrite, "Nothing yet either.", false},
	} {
		if p.Permits(v.Name) {
			v.Ticked = slices.Contains(ticked, v.Name)
			all = append(all, v)
		}
	}
	return all
}

func (ts *tokens) showNewToken(r *shell.Request) (shell.View, error) {
	f := tokenForm{May: permissionsOf(r.Person, access.VideoRead, access.VideoWrite)}
	return ts.renderToken(http.StatusOK, f, false), nil
}

func (ts *tokens) createToken(r *shell.Request) (shell.View, error) {
	f := readToken(r)
	in := access.TokenInput{Environment: r.Person.Environment.ID, Name: f.Name, Permissions: r.PostForm["permission"]}
	f.check(&in, r.Person, ts.Now())
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, secret, err := ts.Access.CreateToken(r.Context(), in, ts.Now())
		if err == nil {
			return shell.ShowAs(http.StatusCreated, "once", tokenOnce(made, secret)), nil
		}
		if status, err = f.TakeErr(err); err != nil {
			return shell.View{}, err
		}
	} else {
		in.Permissions = nil // what is wrong with them is said
		f.AddErr(in.Check(ts.Now()))
	}
	return ts.renderToken(status, f, false), nil
}

// tokenOnce is the page of a token that was made.
func tokenOnce(t access.Token, secret string) shell.SecretPage {
	return shell.SecretPage{
		Heading: "Access token created", Secret: "The secret",
		Keep: "Store both with your program's other secrets. If you lose the secret, revoke the token and " +
			"create another one.",
		Use:  "Programs send them with HTTP Basic authentication: the ID as user name, the secret as password.",
		Name: t.Name, ListAddress: shell.TokensPath, ListName: "Access tokens", To: shell.TokensPath,
		Lines: []shell.CopyLine{{What: "Token ID", Text: string(t.ID)}, {What: "Secret", Text: secret}},
	}
}

// maxDays until a token expires: a hundred years.
const maxDays = 36500

// check says what the service does not: nobody gives what they do not have, nor, unsaid, everything.
func (t *tokenForm) check(in *access.TokenInput, p access.Person, now time.Time) {
	if t.Name == "" {
		t.Add("name", "Say what will use it.")
	}
	if len(in.Permissions) == 0 {
		t.Add("permission", "Choose what it may do.")
	}
	for _, v := range in.Permissions {
		if !slices.Contains(access.Permissions(), v) || !p.Permits(v) {
			t.Add("permission", "You can only grant permissions that you have yourself.")
		}
	}
	in.ExpiresAt = t.expires(now)
}

// expires is when it does; zero: never. What is no number of days is said beside it.
func (t *tokenForm) expires(now time.Time) time.Time {
	if t.Days == "" {
		return time.Time{}
	}
	days, err := strconv.Atoi(t.Days)
	if err != nil || days < 1 || days > maxDays {
		t.Add("days", "This must be a whole number of days, from 1 to "+strconv.Itoa(maxDays)+".")
		return time.Time{}
	}
	return now.AddDate(0, 0, days)
}

// tokenOf reads the token that a request names.
func (ts *tokens) tokenOf(r *shell.Request) (token, error) {
	t, err := ts.Access.TokenOf(r.Context(), r.Person.Environment.ID, id.Token(r.PathValue("token")))
	return ts.token(r.Person, t), err
}

func (ts *tokens) askRevoke(_ *shell.Request, t token) (shell.View, error) {
	q := shell.Question{
		Heading: "Revoke this access token?", Name: t.Name, Yes: "Revoke", No: "Keep it", Class: "harm",
		ListAddress: shell.TokensPath, ListName: "Access tokens", Address: shell.TokensPath, To: t.Revoke(),
		Text: "Programs that use it are refused from then on, and people who signed in here with it are signed out. " +
			"It cannot be brought back. What was made with it stays. ",
	}
	switch {
	case t.Own:
		q.Text += "You are signed in with it, so you will be signed out at once."
	case t.LastUsedAt.IsZero():
		q.Text += "It was never used."
	default:
		q.Text += "It was last used on " + shell.UTC(t.LastUsedAt) + "."
	}
	return shell.Show("ask", q), nil
}

// revoke ends a token. Who is signed in with it is out: the page that follows says so, as to everybody else who is.
func (ts *tokens) revoke(r *shell.Request) (shell.View, error) {
	err := ts.Access.RevokeTokenOf(r.Context(), r.Person.Environment.ID, id.Token(r.PathValue("token")), ts.Now())
	return shell.Redirect(shell.TokensPath), err
}

func (ts *tokens) showTokenCode(r *shell.Request) (shell.View, error) {
	return ts.renderToken(http.StatusOK, readToken(r), !r.Resumed()), nil
}

// renderToken shows the form of an access token, with its code.
func (ts *tokens) renderToken(
	status int, f tokenForm, open bool,
) shell.View {
	read := f
	read.FormErrors = shell.FormErrors{} // only of what can't be read
	var ends string
	if at := read.expires(ts.Now()); !at.IsZero() {
		ends = at.UTC().Format(time.RFC3339)
	}
	may := f.permissions()
	f.Code = ts.Code("make", shell.TokensPath+"/code", sdkcode.Request{
		Path: "/system/v1/access-tokens", Once: "secret",
		Body: sdkcode.Object{}.With("name", f.Name).With("permissions", may).With("expires_at", ends),
	})
	f.Code.Open = open
	switch {
	case len(read.Bad) > 0:
		f.Code.None = shell.Unreadable
	case len(may) == 0: // the API would give all that the caller has
		f.Code.None = "Choose its permissions to see the request."
	}
	return shell.ShowAs(status, "newtoken", f)
}
