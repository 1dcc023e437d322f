package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// Where things are in a backup. A snapshot is complete when it has its manifest, which is written last.
const (
	objectsRoot   = "objects/"   // + the object's key in the storage
	snapshotsRoot = "snapshots/" // + the snapshot's name + one of the files below
	pendingRoot   = "pending/"   // lists of what runs have copied that did not come to their end
	lockKey       = "lock"

	manifestFile  = "manifest.json"
	rowsFile      = "rows.jsonl.gz"
	listFile      = "objects.jsonl.gz"
	masterKeyFile = "master-key"
)

// Where things are in a service's storage that no backup has.
var leftOut = []string{"databases/", "tails/", "restoring/", "doctor/"} //nolint:gochecknoglobals // a table

const (
	manifestFormat   = 1
	maxManifestBytes = 1 << 20
)

// Manifest says what a snapshot consists of.
type Manifest struct {
	Format  int       `json:"millrace_backup"`
	Name    string    `json:"name"`
	Version string    `json:"version"` // of the program
	Begun   time.Time `json:"begun_at"`
	Made    time.Time `json:"made_at"` // when the database was as in the snapshot
	Schema  int64     `json:"schema"`

	MasterKey         string           `json:"master_key"` // fingerprint
	MasterKeyIncluded bool             `json:"master_key_included"`
	Counts            map[string]int64 `json:"rows"` // of each table

	Rows    File  `json:"rows_file"`
	List    File  `json:"objects_file"`
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"` // of the objects

	// Missing is how many objects rows name that the storage did not have.
	Missing int64 `json:"missing_objects"`
}

// File is a file of a snapshot.
type File struct {
	Size     int64  `json:"size"`
	Checksum string `json:"sha256"`
}

func snapshotKey(name, file string) string { return snapshotsRoot + name + "/" + file }

// newName is the name of a snapshot or a run: those of later ones come later in the alphabet.
func newName(now time.Time) string {
	const digits = 6
	at := strings.Replace(now.UTC().Format("20060102T150405.000Z"), ".", "", 1)
	return at + "-" + strings.ToLower(rand.Text()[:digits])
}

// snapshots are the names of those that are complete, and of all, the oldest first.
func (c *common) snapshots(ctx context.Context) (complete, all []string, err error) {
	for key, err := range c.target.List(ctx, snapshotsRoot) {
		if err != nil {
			return nil, nil, fmt.Errorf("list snapshots: %w", err)
		}
		name, file, _ := strings.Cut(strings.TrimPrefix(key, snapshotsRoot), "/")
		if len(all) == 0 || all[len(all)-1] != name {
			all = append(all, name)
		}
		if file == manifestFile {
			complete = append(complete, name)
		}
	}
	return complete, all, nil
}

// chosen is the manifest of the snapshot with a name, or the newest complete one.
func (c *common) chosen(ctx context.Context, name string) (*Manifest, error) {
	complete, _, err := c.snapshots(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case len(complete) == 0:
		return nil, ErrNone
	case name == "":
		name = complete[len(complete)-1]
	case !slices.Contains(complete, name):
		return nil, fmt.Errorf("there is no snapshot %q; there are %s", name, strings.Join(complete, ", "))
	}
	return c.manifest(ctx, name)
}

// manifest reads that of a snapshot.
func (c *common) manifest(ctx context.Context, name string) (*Manifest, error) {
	text, err := readSmall(ctx, c.target, snapshotKey(name, manifestFile), maxManifestBytes)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err = json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return nil, fmt.Errorf("the manifest of snapshot %s can't be read", name)
	}
	switch {
	case m.Format > manifestFormat:
		return nil, fmt.Errorf("snapshot %s was made by a newer version of Millrace, %q: use that", name, m.Version)
	case m.Name != name, m.Objects < 0, m.Bytes < 0, m.Rows.Size < 0, m.List.Size < 0:
		return nil, fmt.Errorf("the manifest of snapshot %s is not its own, or damaged", name)
	}
	return &m, nil
}

// readSmall reads an object that has at most so many bytes.
func readSmall(ctx context.Context, store blob.Store, key string, most int64) (_ []byte, err error) {
	r, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if int64(len(text)) > most {
		return nil, fault.New(fault.Invalid, "%s has more than %d bytes", key, most)
	}
	return text, nil
}

func (c *common) putManifest(ctx context.Context, m *Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return c.target.Put(ctx, snapshotKey(m.Name, manifestFile), bytes.NewReader(append(text, '\n')))
}

// checksum is a SHA-256 as it is written down.
func checksum(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
