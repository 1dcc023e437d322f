// Package drm defines how video is encrypted for viewers: DRM configurations, and the content keys of assets and live
// streams. It must never know SQL, HTTP, media or the clock (`now` is an argument).
package drm

import (
	"context"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// Scheme is a protection scheme of ISO/IEC 23001-7 (Common Encryption).
type Scheme string

// The schemes.
const (
	CBCS Scheme = "cbcs" // AES-CBC with a pattern, section 10.4
	CENC Scheme = "cenc" // AES-CTR, section 10.1
)

// Class is the kind of tracks that a content key is for, by the names that CPIX has for intendedTrackType.
type Class string

// The classes. A configuration has either one key for all video, or one for each of SD, HD and UHD1.
const (
	Video Class = "VIDEO"
	SD    Class = "SD"   // up to 576 lines; of an upright picture, columns
	HD    Class = "HD"   // up to 1080
	UHD1  Class = "UHD1" // above
	Audio Class = "AUDIO"
)

// The largest pictures of the classes, by the shorter side in pixels: max_resolution of a token measures that too.
const (
	MaxSD = 576
	MaxHD = 1080
)

// ClassOf is the class of a picture of a size in pixels, upright or not.
func ClassOf(width, height int) Class {
	switch short := min(width, height); {
	case short <= MaxSD:
		return SD
	case short <= MaxHD:
		return HD
	}
	return UHD1
}

// SystemID names a DRM system, as the box pssh does (ISO/IEC 23001-7 section 8.1).
type SystemID [16]byte

// The DRM systems, as they are registered at dashif.org/identifiers.
//
//nolint:gochecknoglobals // constants
var (
	// W3C Common PSSH.
	ClearKey  = SystemID{0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b}
	Widevine  = SystemID{0xed, 0xef, 0x8b, 0xa9, 0x79, 0xd6, 0x4a, 0xce, 0xa3, 0xc8, 0x27, 0xdc, 0xd5, 0x1d, 0x21, 0xed}
	PlayReady = SystemID{0x9a, 0x04, 0xf0, 0x79, 0x98, 0x40, 0x42, 0x86, 0xab, 0x92, 0xe6, 0x5b, 0xe0, 0x88, 0x5f, 0x95}
	FairPlay  = SystemID{0x94, 0xce, 0x86, 0xfb, 0x07, 0xff, 0x4f, 0x43, 0xad, 0xb8, 0x93, 0xd2, 0xfa, 0x96, 0x8c, 0xa2}
)

// Name is the usual one.
func (s SystemID) Name() string {
	switch s {
	case ClearKey:
		return "ClearKey"
	case Widevine:
		return "Widevine"
	case PlayReady:
		return "PlayReady"
	case FairPlay:
		return "FairPlay"
	}
	return "another DRM system"
}

// Key is a content key.
type Key struct {
	ID    [16]byte
	Value [16]byte // secret
	IV    [16]byte // the constant IV of cbcs; cenc does not use it
	Class Class
	// Period is the number of the period that the key is for.
	Period int
}

// Period is a stretch of a live stream that one set of keys is for. It lasts until the next one begins.
type Period struct {
	Number int
	From   time.Time // zero: the first one
}

// System is a DRM system whose players are to be told how to get keys.
type System struct {
	ID SystemID
	// Signals are what a key provider has said; without one there are none, and the usual ones are to be made from the
	// key IDs.
	Signals []Signal
}

// Signal is the signalling of one key in one DRM system, as a key provider wants it in playlists and init segments.
// Empty fields are left out.
type Signal struct {
	KeyID  [16]byte
	PSSH   []byte // the whole box
	Media  string // the line EXT-X-KEY of media playlists
	Master string // the line EXT-X-SESSION-KEY of the multivariant playlist
}

// Content is how one asset or live stream is encrypted for one configuration. Its keys never change; new periods come
// in good time before they begin.
type Content struct {
	Scheme       Scheme
	EncryptAudio bool
	Keys         []Key
	Systems      []System
	Periods      []Period // at least one, in their order
	Rotates      bool     // there are more periods to come, or were
}

// PeriodAt is the number of the period that a segment is in, by the wall-clock time of its first frame
// (EXT-X-PROGRAM-DATE-TIME). Where keys do not rotate it is 0.
func (c Content) PeriodAt(t time.Time) int {
	n := c.Periods[0].Number
	for _, p := range c.Periods[1:] {
		if t.Before(p.From) {
			break
		}
		n = p.Number
	}
	return n
}

// Key is the key of a class in a period; false: such tracks are not encrypted. A class of pictures that has no key of
// its own has that of all video.
func (c Content) Key(class Class, period int) (Key, bool) {
	if class == Audio && !c.EncryptAudio {
		return Key{}, false
	}
	var all Key
	found := false
	for _, k := range c.Keys {
		switch {
		case k.Period != period:
		case k.Class == class:
			return k, true
		case k.Class == Video && class != Audio:
			all, found = k, true
		}
	}
	return all, found
}

// MaxConfigurations is how many configurations an environment may have.
const MaxConfigurations = 100

// Configuration says how what it is named for is encrypted, and who gives out licences.
type Configuration struct {
	ID          id.DRMConfiguration
	Environment id.Environment
	Name        string
	CreatedAt   time.Time
	Settings
}

// Resource is what is encrypted: an asset or a live stream.
type Resource struct {
	Kind playbackid.ObjectKind
	ID   string
}

// ResourceOf is what a playback ID leads to.
func ResourceOf(o playbackid.Object) Resource { return Resource{Kind: o.Kind, ID: o.ObjectID} }

// ConfigurationOf is the DRM configuration that a playback ID names; empty: none.
func ConfigurationOf(o playbackid.Object) id.DRMConfiguration {
	return id.DRMConfiguration(o.ID.DRMConfigurationID)
}

// Stored is what is stored of the keys of an asset or live stream.
type Stored struct {
	Environment   id.Environment
	Resource      Resource
	Configuration id.DRMConfiguration
	Revision      int64 // counts writes; the store compares-and-sets on it; 0: there is none yet
	StoredKeys
}

// StoredKeys is the secret part of it.
type StoredKeys struct {
	Keys    []Key          `json:"keys"`
	Periods []Period       `json:"periods"`
	Signals []StoredSignal `json:"signals,omitempty"`
}

// StoredSignal is a signal of a system.
type StoredSignal struct {
	System SystemID
	Signal
}

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	// InsertConfiguration is fault.Conflict when the environment has `most` configurations.
	InsertConfiguration(ctx context.Context, c Configuration, most int) error
	Configuration(ctx context.Context, c id.DRMConfiguration) (Configuration, error)
	Configurations(ctx context.Context, env id.Environment, page, limit int) ([]Configuration, error) // newest first
	// SaveSettings replaces those of a configuration.
	SaveSettings(ctx context.Context, env id.Environment, c id.DRMConfiguration, s Settings) error
	// DeleteConfiguration is fault.Conflict while a playback ID names it.
	DeleteConfiguration(ctx context.Context, env id.Environment, c id.DRMConfiguration) error
	// Keys reads those of a resource. They go with the resource.
	Keys(ctx context.Context, r Resource, c id.DRMConfiguration) (Stored, error)
	// SaveKeys writes keys if the revision is still that of s, and returns what is there afterwards: those of the first
	// writer.
	SaveKeys(ctx context.Context, s Stored) (Stored, error)
}

// API is what the REST side calls: configurations are made by the command line.
type API interface {
	Get(ctx context.Context, env id.Environment, c id.DRMConfiguration) (Configuration, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Configuration, error)
}
