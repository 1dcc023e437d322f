package dashboard

import (
	"net/http"
	"net/url"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/signing"
	"millrace/internal/id"
)

const keysPath = settingsPath + "/signing-keys"

func (s *server) routeKeys() {
	s.handle("GET "+keysPath, "", access.SystemRead, s.listKeys)
	s.handle("POST "+keysPath, "create-signing-key", access.SystemWrite, s.createKey)
	s.handle("GET "+keysPath+"/{key}/delete", "", access.SystemWrite, s.askDeleteKey)
	s.handle("POST "+keysPath+"/{key}/delete", "delete-signing-key", access.SystemWrite, s.deleteKey)
}

// signingKey is a signing key as pages show it.
type signingKey struct {
	ID        id.SigningKey
	CreatedAt time.Time
}

// Delete is the address that asks before.
func (k signingKey) Delete() string { return keysPath + "/" + url.PathEscape(string(k.ID)) + "/delete" }

// keyList is the page of the signing keys of the environment.
type keyList struct {
	finding

	Rows []signingKey
	May  bool // the person may make and delete them
}

// Section is where in the settings the page is.
func (keyList) Section() string { return "signing-keys" }

func (s *server) listKeys(r *request) (view, error) {
	l := keyList{finding: find(r.URL.Query(), keysPath), May: r.Person.Permits(access.SystemWrite)}
	rows, err := paged(&l.finding, func(page, limit int) ([]signing.Key, error) {
		return s.Signing.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	if err != nil {
		return view{}, err
	}
	for _, k := range rows {
		l.Rows = append(l.Rows, signingKey{k.ID, k.CreatedAt})
	}
	return show("keys", l), nil
}

func (s *server) createKey(r *request) (view, error) {
	k, private, err := s.Signing.Create(r.Context(), r.Person.Environment.ID, s.Now())
	if err != nil {
		return view{}, err
	}
	const half = "Private half"
	return showAs(http.StatusCreated, "once", shownOnce{
		Heading: "The signing key is made", Secret: "The private half",
		Keep: "The service does not keep it. Keep it in the place where your server keeps its secrets: who has it " +
			"can let anybody watch. When it is lost, make another key and delete this one.",
		Use:  "The private half is the base64 of a PEM, as the API gives it and as @mux/mux-node takes it.",
		Name: short(k.ID), ListAddress: keysPath, ListName: "Signing keys", To: keysPath,
		Lines: []copyLine{{"Key ID", string(k.ID)}, {half, private}},
		PEM:   half, File: "signing-key-" + string(k.ID) + ".pem",
	}), nil
}

func (s *server) askDeleteKey(r *request) (view, error) {
	found, err := s.Signing.Get(r.Context(), r.Person.Environment.ID, id.SigningKey(r.PathValue("key")))
	if err != nil {
		return view{}, err
	}
	k := signingKey{found.ID, found.CreatedAt}
	return show("ask", question{
		Heading: "Delete this signing key?", Name: string(k.ID), Yes: "Delete", No: "Keep it", Class: "harm",
		ListAddress: keysPath, ListName: "Signing keys", Address: keysPath, To: k.Delete(),
		Text: "Every link signed with it stops at once, also for those who are watching. It cannot be brought back: " +
			"links have to be signed with another key. It was made on " + utc(k.CreatedAt) + ".",
	}), nil
}

func (s *server) deleteKey(r *request) (view, error) {
	err := s.Signing.Delete(r.Context(), r.Person.Environment.ID, id.SigningKey(r.PathValue("key")))
	return redirect(keysPath), err
}
