package assets

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/respond"
)

const (
	// uploadTime is how long a person has to send a file: a large one over a bad line, with the machine asleep at
	// night.
	uploadTime = 24 * time.Hour
)

// uploadState is an upload as the script that sends it sees it.
type uploadState struct {
	ID     id.Upload     `json:"id"`
	Status upload.Status `json:"status"`
	// path that takes the bytes, for who may write, while they are waited for
	URL   string `json:"url,omitempty"`
	Asset string `json:"asset,omitempty"` // address of the page of what was made of it
	Error string `json:"error,omitempty"` // why nothing was
}

func (ups *uploads) route() {
	ups.Handle("POST "+shell.UploadsPath, "create-direct-upload", shell.Writes, ups.createUpload)
	ups.Handle("GET "+shell.UploadsPath+"/{upload}", "", shell.Reads, ups.showUpload)
	ups.Handle("POST "+shell.UploadsPath+"/{upload}/cancel", "cancel-direct-upload", shell.Writes, ups.cancelUpload)
}

func uploadOf(r *shell.Request) id.Upload { return id.Upload(r.PathValue("upload")) }

// createUpload makes an upload for a file of this machine, which this page alone may send.
func (ups *uploads) createUpload(r *shell.Request) (shell.View, error) {
	origin := r.Header.Get("Origin")
	if origin == "" { // of a browser that sends none with requests to the page's own origin
		origin = upload.AnyOrigin
	}
	seconds := int(uploadTime / time.Second)
	u, err := ups.Uploads.Create(r.Context(), r.Person.Environment.ID, upload.CreateInput{
		Timeout: &seconds, CORSOrigin: origin, DefaultQuality: r.Person.Environment.VideoQuality,
		Options: assetopt.Options{
			Meta:             assetopt.Meta{Title: titleOf(r.PostFormValue("name"))},
			PlaybackPolicies: []playbackid.Policy{playbackid.Public},
		},
	}, ups.Now())
	return ups.fileView(r, u, err)
}

// showUpload says what became of an upload.
func (ups *uploads) showUpload(r *shell.Request) (shell.View, error) {
	u, err := ups.Uploads.Get(r.Context(), r.Person.Environment.ID, uploadOf(r), ups.Now())
	return ups.fileView(r, u, err)
}

func (ups *uploads) cancelUpload(r *shell.Request) (shell.View, error) {
	u, err := ups.Uploads.Cancel(r.Context(), r.Person.Environment.ID, uploadOf(r), ups.Now())
	return ups.fileView(r, u, err)
}

// fileView responds with an upload, or with what is wrong as a sentence.
func (ups *uploads) fileView(r *shell.Request, u upload.Upload, err error) (shell.View, error) {
	f := uploadState{ID: u.ID, Status: u.Status}
	status := http.StatusOK
	if err != nil {
		status = respond.Page.Of(err).Code
	}
	switch {
	case fault.Is(err, fault.NotFound):
		f.Error = "This upload no longer exists."
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Denied), fault.Is(err, fault.TooMany):
		f.Error = shell.Sentence(err)
	case err != nil:
		return shell.View{}, err
	case u.Asset != "":
		f.Asset = shell.AssetsPath + "/" + string(u.Asset)
	case u.Status == upload.Waiting && r.Person.Permits(shell.Writes):
		f.URL = "/uploads/" + u.Secret
	}
	if u.Error != nil {
		f.Error = shell.Capital(u.Error.Message)
	}
	return shell.Reply(status, f), nil
}

// titleOf is the name of a file as that of an asset.
func titleOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	if runes := []rune(name); len(runes) > assetopt.MaxTitle {
		name = string(runes[:assetopt.MaxTitle])
	}
	return strings.TrimSpace(name)
}
