// Package upload is the direct upload, a URL that accepts one media file from which an asset is created: its type,
// states, rules and service. It must never know assets' rows, where bytes are kept, SQL, HTTP or the clock (`now` is an
// argument).
package upload

import (
	"errors"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/id"
)

// Upload is one URL that takes one file. Its JSON is the data of its events: what the API shows of it, but for the URL,
// which is a secret.
type Upload struct {
	ID          id.Upload        `json:"id"`
	Environment id.Environment   `json:"environment_id"`
	Status      Status           `json:"status"`
	Timeout     int              `json:"timeout"` // seconds from its creation in which the whole file has to come
	CORSOrigin  string           `json:"cors_origin"`
	Options     assetopt.Options `json:"new_asset_settings"`
	Test        bool             `json:"test,omitempty"`
	Asset       id.Asset         `json:"asset_id,omitempty"` // once the file is there
	Error       *Error           `json:"error,omitempty"`
	// Secret is what its URL is known by: who has it may upload.
	Secret string `json:"-"`
	// Media is where the file goes, and what the asset will own.
	Media  id.Media `json:"-"`
	Length `json:"-"`
	// Cleared says that it is over and that nothing is kept of its file but what its asset has.
	Cleared bool `json:"-"`
	// Unneeded is since when its row is kept for those who ask alone: it ended without a playable asset, or that was
	// deleted; zero: it is needed.
	Unneeded  time.Time `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Revision  int64     `json:"-"` // counts writes; the store compares-and-sets on it
}

// Length is what is known of the length of the file.
type Length struct {
	// Size is how many bytes the file has or, unless Whole, may have so far: they count against the environment's
	// quota.
	Size     int64
	Whole    bool
	Metadata string // what a tus client said of the file, in the form of Upload-Metadata
}

// ErrQuota says that an environment's uploads that are under way have all the bytes that they may have together.
var ErrQuota = errors.New("the environment's quota of uploads is used up")

// Error is why an upload is errored.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Expires is when a waiting upload times out.
func (u *Upload) Expires() time.Time {
	return u.CreatedAt.Add(time.Duration(u.Timeout) * time.Second)
}

// WithoutSecrets is the upload as its events store it: the URLs of inputs may carry the caller's credentials.
func (u Upload) WithoutSecrets() Upload {
	u.Secret, u.Options.Inputs = "", assetopt.BareInputs(u.Options.Inputs)
	return u
}

// WithSecrets is an upload of an event with the inputs that it has now, and with its secret as long as the URLs can be
// used. Earlier versions stored no inputs.
func (u Upload) WithSecrets(now Upload) Upload {
	if u.Status == Waiting && now.Status == Waiting {
		u.Secret = now.Secret
	}
	if len(u.Options.Inputs) == 0 {
		u.Options.Inputs = now.Options.Inputs
	}
	u.Options.Inputs = assetopt.FullInputs(u.Options.Inputs, now.Options.Inputs)
	return u
}

// At is the upload as it is at a time: one whose time has passed is timed out, even before that is written down.
func (u *Upload) At(now time.Time) Upload {
	v := *u
	if v.Status == Waiting && !now.Before(u.Expires()) {
		v.Status = TimedOut
	}
	return v
}

// Due is when the job should have begun that is next in an upload's life: JobExpire at the end of its time, JobClear
// when it is over; zero: none.
func (u *Upload) Due() time.Time {
	switch {
	case u.Cleared:
		return time.Time{}
	case u.Status == Waiting:
		return u.Expires()
	}
	return u.UpdatedAt
}
