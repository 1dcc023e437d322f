package hlscheck

import (
	"context"
	"encoding/json"
	"net/http"
)

// sessionData is EXT-X-SESSION-DATA.
type sessionData struct{ id, value, uri, format string }

// checkSessionData asks for what the multivariant playlist names beside media. A player may give up over it.
func (c *checker) checkSessionData(ctx context.Context) error {
	for _, d := range c.master.session {
		c.check("session-data", (d.value == "") != (d.uri == ""), c.o.URL, "%s has VALUE %q and URI %q", d.id, d.value,
			d.uri)
		if d.uri == "" {
			continue
		}
		u := c.resolve(c.o.URL, d.uri)
		a, err := c.fetch(ctx, http.MethodGet, u, "")
		if err != nil {
			return err
		}
		if !c.check("status", a.status == http.StatusOK, u, "status %d", a.status) {
			continue
		}
		c.check("session-data", d.format == "RAW" || json.Valid(a.body), u, "%s is no JSON: %.100q", d.id, a.body)
	}
	return nil
}
