package settings

import (
	"net/http"
	"time"

	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

func (s *tokens) showTokenCode(r *shell.Request) (shell.View, error) {
	return s.renderToken(r, http.StatusOK, readToken(r), !r.Resumed())
}

// renderToken shows the form of an access token, with its code.
func (s *tokens) renderToken(
	r *shell.Request, status int, f tokenForm, open bool,
) (shell.View, error) {
	read := f
	read.FormErrors = shell.FormErrors{} // only of what can't be read
	var ends string
	if at := read.expires(s.Now()); !at.IsZero() {
		ends = at.UTC().Format(time.RFC3339)
	}
	may := f.permissions()
	f.Code = s.Code("make", shell.TokensPath+"/code", sdkcode.Request{
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
	return shell.ShowAs(status, "newtoken", f), nil
}
