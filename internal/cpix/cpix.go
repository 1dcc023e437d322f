// Package cpix requests content keys from a key provider, in CPIX documents (DASH-IF Content Protection Information
// Exchange Format 2.3) as profiled by SPEKE 2.0. It must never know HTTP, configurations or where keys are kept.
package cpix

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Version is that of SPEKE, which requests and responses name in the header X-Speke-Version.
const Version = "2.0"

// ContentType is that of requests and responses.
const ContentType = "application/xml"

const (
	maxDocument = 1 << 20 // bytes
	maxKeys     = 64
	maxPSSH     = 64 << 10 // bytes of a box
	maxLine     = 16 << 10 // bytes of a line of a playlist
)

// Key is a content key. In a request its value is not known yet.
type Key struct {
	ID    [16]byte
	Value [16]byte
	IV    [16]byte
	Track string // intendedTrackType: VIDEO, SD, HD, UHD1, AUDIO
}

// System asks for, or has, the signalling of one key in one DRM system.
type System struct {
	ID     [16]byte // of the system
	KeyID  [16]byte
	PSSH   []byte // the box
	Media  string // the line EXT-X-KEY
	Master string // the line EXT-X-SESSION-KEY
}

// Request asks for keys.
type Request struct {
	ContentID string
	Scheme    string // cbcs or cenc
	Keys      []Key
	Systems   [][16]byte
	Period    int // index of the key period; negative: keys do not rotate
	// Recipient has keys encrypted to it; nil: they come in clear.
	Recipient *Recipient
}

// Response is what a provider gives: a key for each track type that was asked for. Its key IDs may be others than those
// of the request.
type Response struct {
	Keys    []Key
	Systems []System
}

// The document of a request, with the prefixes that are usual, which some providers insist on.
type requestDocument struct {
	XMLName   xml.Name         `xml:"cpix:CPIX"`
	ContentID string           `xml:"contentId,attr"`
	Version   string           `xml:"version,attr"`
	CPIX      string           `xml:"xmlns:cpix,attr"`
	PSKC      string           `xml:"xmlns:pskc,attr"`
	DS        string           `xml:"xmlns:ds,attr,omitempty"`
	Delivery  *requestDelivery `xml:"cpix:DeliveryDataList>cpix:DeliveryData"`
	Keys      []requestKey     `xml:"cpix:ContentKeyList>cpix:ContentKey"`
	Systems   []requestSystem  `xml:"cpix:DRMSystemList>cpix:DRMSystem"`
	Period    *requestPeriod   `xml:"cpix:ContentKeyPeriodList>cpix:ContentKeyPeriod"`
	Rules     []requestRule    `xml:"cpix:ContentKeyUsageRuleList>cpix:ContentKeyUsageRule"`
}

type requestDelivery struct {
	ID          string `xml:"id,attr"`
	Certificate string `xml:"cpix:DeliveryKey>ds:X509Data>ds:X509Certificate"`
}

type requestKey struct {
	KeyID  string `xml:"kid,attr"`
	IV     string `xml:"explicitIV,attr,omitempty"`
	Scheme string `xml:"commonEncryptionScheme,attr"`
}

type requestSystem struct {
	KeyID      string        `xml:"kid,attr"`
	SystemID   string        `xml:"systemId,attr"`
	PSSH       *struct{}     `xml:"cpix:PSSH"`
	Protection *struct{}     `xml:"cpix:ContentProtectionData"`
	HLS        []requestList `xml:"cpix:HLSSignalingData"`
}

type requestList struct {
	Playlist string `xml:"playlist,attr"`
}

type requestPeriod struct {
	ID    string `xml:"id,attr"`
	Index int    `xml:"index,attr"`
}

type requestRule struct {
	KeyID  string         `xml:"kid,attr"`
	Track  string         `xml:"intendedTrackType,attr"`
	Period *requestFilter `xml:"cpix:KeyPeriodFilter"`
	Video  *struct{}      `xml:"cpix:VideoFilter"`
	Audio  *struct{}      `xml:"cpix:AudioFilter"`
}

type requestFilter struct {
	PeriodID string `xml:"periodId,attr"`
}

// fairPlay has no box.
const fairPlay = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"

// Document is the XML of a request.
func (r Request) Document() ([]byte, error) {
	doc := requestDocument{
		ContentID: r.ContentID,
		Version:   "2.3",
		CPIX:      "urn:dashif:org:cpix",
		PSKC:      "urn:ietf:params:xml:ns:keyprov:pskc",
	}
	if r.Recipient != nil {
		doc.DS = "http://www.w3.org/2000/09/xmldsig#"
		doc.Delivery = &requestDelivery{
			ID:          "recipient",
			Certificate: base64.StdEncoding.EncodeToString(r.Recipient.certificate),
		}
	}
	var filter *requestFilter
	if r.Period >= 0 {
		doc.Period = &requestPeriod{ID: "period_" + strconv.Itoa(r.Period), Index: r.Period}
		filter = &requestFilter{PeriodID: doc.Period.ID}
	}
	for _, k := range r.Keys {
		key := requestKey{KeyID: uuid(k.ID), Scheme: r.Scheme}
		if r.Scheme == "cbcs" {
			key.IV = base64.StdEncoding.EncodeToString(k.IV[:])
		}
		doc.Keys = append(doc.Keys, key)
		rule := requestRule{KeyID: uuid(k.ID), Track: k.Track, Period: filter, Video: &struct{}{}}
		if k.Track == "AUDIO" {
			rule.Video, rule.Audio = nil, &struct{}{}
		}
		doc.Rules = append(doc.Rules, rule)
		for _, s := range r.Systems {
			system := requestSystem{KeyID: uuid(k.ID), SystemID: uuid(s), HLS: []requestList{{"media"}, {"master"}}}
			if system.SystemID != fairPlay {
				system.PSSH, system.Protection = &struct{}{}, &struct{}{}
			}
			doc.Systems = append(doc.Systems, system)
		}
	}
	out, err := xml.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode CPIX document: %w", err)
	}
	return append([]byte(xml.Header), out...), nil
}

// uuid is the text of a key ID or system ID.
func uuid(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func parseUUID(text string) (b [16]byte, err error) {
	text = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "urn:uuid:")
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(b) {
		return b, errors.New("an ID is not a UUID")
	}
	return [16]byte(raw), nil
}
