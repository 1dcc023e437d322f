package shell

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"millrace/internal/control/access"
	"millrace/internal/fault"
)

const (
	undoCookie  = "millrace-undo"
	undoTime    = 60   // seconds in which the page that follows has to be asked for
	maxUndo     = 3500 // bytes of a cookie: browsers keep 4096 with its name and attributes
	undoneField = "undo_of"
)

// undo is what the page that follows an act says, with the form of the reverse act: one that there is anyway, filled in
// with what was before. It is in a cookie until that page is shown, so that any node can show it.
type undo struct {
	Text   string     `json:"text"`
	To     string     `json:"to,omitempty"`     // where the form leads; empty: there is none
	Fields url.Values `json:"fields,omitempty"` // of the form
	Who    string     `json:"who"`              // mark of the session: nobody else is shown it
}

// mark names values.
func mark(values url.Values) string {
	sum := sha256.Sum256([]byte(values.Encode()))
	return hex.EncodeToString(sum[:16])
}

func markOf(p access.Person) string { return mark(url.Values{"session": {p.Session.Hash}}) }

// Undoable has the page that follows an act offer to undo it: by a form to an address with what was there before. It is
// not offered where nothing has changed, or where what was before is too long or can't be typed. What undoes is not
// undone itself: the page says that it has worked.
func (r *Request) Undoable(text, to string, before, after url.Values) {
	who := markOf(r.Person)
	if r.Undoes() {
		r.undo = &undo{Text: "It is as it was before.", Who: who}
		return
	}
	if before.Encode() == after.Encode() || !typable(before) {
		return
	}
	fields := url.Values{undoneField: {mark(after)}}
	maps.Copy(fields, before)
	r.undo = &undo{Text: text, To: to, Fields: fields, Who: who}
}

// Undoes reports whether a form undoes an act.
func (r *Request) Undoes() bool { return r.PostFormValue(undoneField) != "" }

// typable reports whether a form would bring values back as they are: it has no line breaks, nor spaces around.
func typable(values url.Values) bool {
	for _, all := range values {
		for _, v := range all {
			if strings.TrimSpace(v) != v || strings.ContainsAny(v, "\r\n") {
				return false
			}
		}
	}
	return true
}

func (s *Shell) sayUndo(w http.ResponseWriter, r *http.Request, u undo) {
	text, err := json.Marshal(u)
	if value := base64.RawURLEncoding.EncodeToString(text); err == nil && len(value) <= maxUndo {
		s.setUndo(w, r, value, undoTime)
	}
}

func (s *Shell) setUndo(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // over plain HTTP there is no Secure cookie
		Name: undoCookie, Value: value, Path: Path, MaxAge: seconds, HttpOnly: true, Secure: s.overTLS(r),
		SameSite: http.SameSiteLaxMode,
	})
}

// takeUndo is what the page that is shown now offers to undo, this once; nil: nothing.
func (s *Shell) takeUndo(w http.ResponseWriter, r *http.Request, p access.Person) *undo {
	c, err := r.Cookie(undoCookie)
	if err != nil || p.Session.Hash == "" {
		return nil
	}
	s.setUndo(w, r, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	var u undo
	if err != nil || len(c.Value) > maxUndo || json.Unmarshal(text, &u) != nil || u.Who != markOf(p) ||
		u.To != "" && u.To != Local(u.To) {
		return nil
	}
	return &u
}

// StillSo refuses to undo an act when what it has left behind is not as it left it.
func (r *Request) StillSo(now url.Values) error {
	if left := r.PostFormValue(undoneField); left != "" && left != mark(now) {
		return fault.New(fault.Conflict, "it has been changed since, so nothing was undone")
	}
	return nil
}
