package asset

import (
	"context"
	"crypto/subtle"
	"strconv"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// MasterLifetime is how long a master may be downloaded once it is ready.
const MasterLifetime = 24 * time.Hour

// Master is the best there is of an asset, for its owner and for a while.
type Master struct {
	ID        id.StaticRendition `json:"id"`     // names its file
	Status    FileStatus         `json:"status"` // preparing, ready, errored
	Signature string             `json:"signature,omitempty"`
	Expires   time.Time          `json:"expires_at,omitzero"` // whole seconds
}

// Opens reports whether what a URL says opens m at now.
func (m *Master) Opens(expires, signature string, now time.Time) bool {
	return m != nil && m.Status == FileReady && m.Signature != "" && now.Before(m.Expires) &&
		expires == strconv.FormatInt(m.Expires.Unix(), 10) &&
		subtle.ConstantTimeCompare([]byte(signature), []byte(m.Signature)) == 1
}

// SetMasterAccess offers the master for a while, or takes it away. Events master.preparing, master.deleted.
func (s *Service) SetMasterAccess(
	ctx context.Context, env id.Environment, a id.Asset, v string, now time.Time,
) (Asset, error) {
	var l fault.List
	assetopt.CheckMaster(&l, "master_access", v)
	if err := l.Err(); err != nil {
		return Asset{}, err
	}
	return s.change(ctx, env, a, now, func(c *Change) error {
		m := c.Asset.Master
		if v == assetopt.NoMaster {
			if m == nil {
				return errSame
			}
			c.endMaster()
			return nil
		}
		if m != nil && m.Status != FileErrored {
			return errSame
		}
		if c.Asset.Status == Errored {
			return fault.New(fault.Conflict, "the asset is errored: there is no master of it")
		}
		only, err := s.drm.EncryptedOnly(ctx, env, playbackid.RequestsOf(c.Asset.PlaybackIDs)...)
		if err != nil {
			return err
		}
		if only {
			return playbackid.ErrNoMaster()
		}
		c.Asset.Options.MasterAccess = assetopt.Temporary
		c.Asset.Master = &Master{ID: id.StaticRendition(id.New()), Status: FilePreparing}
		if c.Asset.whole() {
			c.makeMaster()
		}
		return nil
	})
}

// makeMaster has the master made that is wanted, now that the asset is whole.
func (c *Change) makeMaster() {
	m := c.Asset.Master
	if m == nil || m.Status != FilePreparing {
		return
	}
	c.tell(EventMasterPreparing)
	c.ask(c.Asset.masterJob())
}

func (c *Change) endMaster() {
	gone := c.Asset.Master
	c.Asset.Options.MasterAccess, c.Asset.Master = assetopt.NoMaster, nil
	c.tell(EventMasterDeleted)
	c.sweepFiles(string(gone.ID))
}

// MasterReady ends a preparing master; see FileMaker.
func (w *Work) MasterReady(ctx context.Context, a id.Asset, file id.StaticRendition, now time.Time) error {
	return w.endMaster(ctx, a, file, BecamePlayable, now, func(c *Change, m *Master) {
		m.Signature, m.Expires = id.New(), c.Asset.UpdatedAt.Add(MasterLifetime).Truncate(time.Second)
		c.tell(EventMasterReady)
		c.ask(c.Asset.masterOverJob())
	})
}

// MasterFailed ends a preparing master; see FileMaker.
func (w *Work) MasterFailed(ctx context.Context, a id.Asset, file id.StaticRendition, now time.Time) error {
	return w.endMaster(ctx, a, file, WorkFailed, now, func(c *Change, _ *Master) { c.tell(EventMasterErrored) })
}

func (w *Work) endMaster(
	ctx context.Context, a id.Asset, file id.StaticRendition, fact Fact, now time.Time, fill func(*Change, *Master),
) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		m := c.Asset.Master
		if m == nil || m.ID != file {
			return noFile()
		}
		to, ok := NextFile(m.Status, fact)
		if !ok {
			if want, _ := NextFile(FilePreparing, fact); m.Status == want {
				return errSame
			}
			return fault.New(fault.Conflict, "the master is %s already", m.Status)
		}
		c.Asset.Master = &Master{ID: m.ID, Status: to}
		fill(c, c.Asset.Master)
		return nil
	})
}

// MasterOver takes a master away whose time is over; see FileMaker. Nothing happens when it is gone.
func (w *Work) MasterOver(ctx context.Context, a id.Asset, file id.StaticRendition, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if m := c.Asset.Master; m == nil || m.ID != file {
			return errSame
		}
		c.endMaster()
		return nil
	})
}
