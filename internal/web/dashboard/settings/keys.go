package settings

import (
	"net/http"
	"net/url"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/signing"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const keysPath = shell.SettingsPath + "/signing-keys"

func (ks *keys) routeKeys() {
	ks.Handle("GET "+keysPath, "", access.SystemRead, ks.listKeys)
	ks.Handle("POST "+keysPath, "create-signing-key", access.SystemWrite, ks.createKey)
	ks.Handle("GET "+keysPath+"/{key}/delete", "", access.SystemWrite, ks.askDeleteKey)
	ks.Handle("POST "+keysPath+"/{key}/delete", "delete-signing-key", access.SystemWrite, ks.deleteKey)
}

// SigningKey is a signing key as pages show it.
type SigningKey struct {
	ID        id.SigningKey
	CreatedAt time.Time
}

// Delete is the address that asks before.
func (s SigningKey) Delete() string { return keysPath + "/" + url.PathEscape(string(s.ID)) + "/delete" }

// keyList is the page of the signing keys of the environment.
type keyList struct {
	shell.Selection

	Rows []SigningKey
	May  bool // the person may make and delete them
}

// Section is where in the settings the page is.
func (keyList) Section() string { return "signing-keys" }

func (ks *keys) listKeys(r *shell.Request) (shell.View, error) {
	l := keyList{Selection: shell.Select(r.URL.Query(), keysPath), May: r.Person.Permits(access.SystemWrite)}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]signing.Key, error) {
		return ks.Signing.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	l.Rows = shell.Each(rows, func(k signing.Key) SigningKey { return SigningKey{k.ID, k.CreatedAt} })
	return shell.Show("keys", l), err
}

func (ks *keys) createKey(r *shell.Request) (shell.View, error) {
	k, private, err := ks.Signing.Create(r.Context(), r.Person.Environment.ID, ks.Now())
	if err != nil {
		return shell.View{}, err
	}
	const label = "Private key"
	return shell.ShowAs(http.StatusCreated, "once", shell.SecretPage{
		Heading: "Signing key created", Secret: "The private key",
		Keep: "The service does not store it. Keep it with your server's other secrets: anyone who has it can " +
			"let anyone watch. If you lose it, create another key and delete this one.",
		Use:  "The private key is the base64 of a PEM, as the API gives it and as @mux/mux-node takes it.",
		Name: shell.Short(k.ID), ListAddress: keysPath, ListName: "Signing keys", To: keysPath,
		Lines: []shell.CopyLine{{What: "Key ID", Text: string(k.ID)}, {What: label, Text: private}},
		PEM:   label, File: "signing-key-" + string(k.ID) + ".pem",
	}), nil
}

func (ks *keys) askDeleteKey(r *shell.Request) (shell.View, error) {
	found, err := ks.Signing.Get(r.Context(), r.Person.Environment.ID, id.SigningKey(r.PathValue("key")))
	if err != nil {
		return shell.View{}, err
	}
	k := SigningKey{found.ID, found.CreatedAt}
	return shell.Show("ask", shell.Question{
		Heading: "Delete this signing key?", Name: string(k.ID), Yes: "Delete", No: "Keep it", Class: "harm",
		ListAddress: keysPath, ListName: "Signing keys", Address: keysPath, To: k.Delete(),
		Text: "Every link signed with it stops at once, also for those who are watching. It cannot be brought back: " +
			"links have to be signed with another key. It was made on " + shell.UTC(k.CreatedAt) + ".",
	}), nil
}

func (ks *keys) deleteKey(r *shell.Request) (shell.View, error) {
	err := ks.Signing.Delete(r.Context(), r.Person.Environment.ID, id.SigningKey(r.PathValue("key")))
	return shell.Redirect(keysPath), err
}
