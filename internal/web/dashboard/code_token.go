package dashboard

import (
	"net/http"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/web/sdkcode"
)

func (s *server) showTokenCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderToken(w, r, p, http.StatusOK, readToken(r, p), !isResumed(r))
}

// renderToken shows the form of an access token, with its code.
func (s *server) renderToken(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f tokenForm, open bool,
) {
	read := f
	read.said = said{} // only of what can't be read
	var ends string
	if at := read.expires(s.Now()); !at.IsZero() {
		ends = at.UTC().Format(time.RFC3339)
	}
	may := f.permissions()
	f.Code = s.code("make", tokensPath+"/code", sdkcode.Request{
		Path: "/system/v1/access-tokens", Once: "secret",
		Body: sdkcode.Object{}.With("name", f.Name).With("permissions", may).With("expires_at", ends),
	})
	f.Code.Open = open
	switch {
	case len(read.Bad) > 0:
		f.Code.None = unreadable
	case len(may) == 0: // the API would give all that the caller has
		f.Code.None = "Choose its permissions to see the request."
	}
	s.render(w, r, p, status, "newtoken", f)
}
