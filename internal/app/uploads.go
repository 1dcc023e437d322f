package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"millrace/internal/config"
	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/id"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
	webupload "millrace/internal/web/upload"
)

// makeUploads builds what takes the files of direct uploads.
func (n *node) makeUploads() {
	space := spaceOf(n.blob)
	n.uploads = upload.New(upload.Options{
		Store: n.db.Uploads(), Quota: uploadQuota(n.cfg.UploadQuota, space),
		DRM: n.drm.Named, Recognition: n.recognisable,
	})
	o := receive.Options{
		Uploads:  n.uploads,
		Assets:   n.assets,
		Complete: n.db.CompleteUpload,
		Store:    n.blob,
		MaxSize:  n.cfg.MaxUploadBytes,
		Space:    space,
		Now:      clock,
	}
	if n.claims != nil {
		o.Claims = n.claims
	}
	n.files = receive.New(o)
	if most := n.files.MaxSize(); most < o.MaxSize {
		n.log.Warn("uploads are limited by the storage: it takes less than max-upload-bytes in one object", "bytes",
			most)
	}
}

// spaceOf tells how much room there is where a store keeps its files; nil: nobody knows, as of a bucket.
func spaceOf(store blob.Store) func() (disk.Space, error) {
	local, ok := store.(blob.Local)
	if !ok {
		return nil
	}
	root, known := local.Path("media")
	if !known {
		return nil
	}
	return func() (disk.Space, error) { return disk.SpaceOf(filepath.Dir(root)) }
}

// uploadQuota is how many bytes the uploads of one environment that are under way may have together: what was set, and
// no more than the disk can have.
func uploadQuota(set int64, space func() (disk.Space, error)) int64 {
	if space == nil {
		return set
	}
	if s, err := space(); err == nil && s.Total > 0 {
		return min(set, max(s.Most(), 1))
	}
	return set
}

// uploadHandler serves the URLs of direct uploads.
func (n *node) uploadHandler() (http.Handler, error) {
	h, err := webupload.New(webupload.Options{
		Files:     uploadFiles{n.files},
		PublicURL: n.base,
		Now:       clock,
		Logger:    n.log,
		Tracer:    n.tracing.Tracer(),
	})
	if err != nil {
		return nil, fmt.Errorf("make handler of uploads: %w", err)
	}
	return h, nil
}

// uploadFiles has web/upload see the files.
type uploadFiles struct{ *receive.Files }

// Open implements the handler's Files.
func (uf uploadFiles) Open(ctx context.Context, u id.Upload, interrupt func()) (webupload.Writer, error) {
	w, err := uf.Files.Open(ctx, u, interrupt)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// piecesFolder is where pieces for a bucket gather.
func piecesFolder(cfg config.Config) (string, error) {
	dir := filepath.Join(cfg.DataDir, "pieces")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make folder for pieces: %w", err)
	}
	return dir, nil
}
