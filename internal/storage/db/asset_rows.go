package db

import (
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/id"
)

type assetRow struct {
	bun.BaseModel `bun:"table:assets,alias:a"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Status        string `bun:"status"`
	Origin        string `bun:"origin"`
	LiveStream    string `bun:"live_stream_id"`
	SourceAsset   string `bun:"source_asset_id"`
	Upload        string `bun:"upload_id"`
	IsLive        bool   `bun:"is_live"`
	Media         string `bun:"media_id"`
	Index         string `bun:"index_key"`
	Entries       int64  `bun:"entries"`
	Document      string `bun:"document"` // assetDocument
	Unfinished    bool   `bun:"unfinished"`
	Exempt        bool   `bun:"exempt"`
	CreatedAt     int64  `bun:"created_at"`
	UpdatedAt     int64  `bun:"updated_at"`
	Revision      int64  `bun:"revision"`
}

// assetDocument is what is read and written as a whole and never searched.
type assetDocument struct {
	Progress   asset.Progress     `json:"progress"`
	Options    assetopt.Options   `json:"options"`
	Facts      asset.Facts        `json:"facts"`
	Errors     *asset.Errors      `json:"errors,omitempty"`
	Recordings []asset.Recording  `json:"recordings,omitempty"`
	InputInfo  []asset.InputInfo  `json:"input_info,omitempty"`
	Thumbnail  *float64           `json:"thumbnail_time,omitempty"`
	Unusual    *asset.NonStandard `json:"non_standard_input_reasons,omitempty"`
	Static     asset.Static       `json:"static_renditions,omitzero"`
	Master     *asset.Master      `json:"master,omitempty"`
	Limit      float64            `json:"limit,omitempty"` // seconds
}

type useRow struct {
	bun.BaseModel `bun:"table:asset_uses,alias:u"`
	Asset         string `bun:"asset_id,pk"`
	Media         string `bun:"media_id,pk"`
	Position      int64  `bun:"position"`
}

type trackRow struct {
	bun.BaseModel `bun:"table:tracks,alias:t"`
	ID            string `bun:"id,pk"`
	Asset         string `bun:"asset_id"`
	Type          string `bun:"type"`
	Status        string `bun:"status"`
	URL           string `bun:"url"`
	Rendition     string `bun:"rendition"`
	Object        string `bun:"object"`
	Channel       string `bun:"channel"`
	Speech        string `bun:"speech"`   // asset.Speech; empty: it is not made of sound
	Document      string `bun:"document"` // asset.Track as its events show it
	CreatedAt     int64  `bun:"created_at"`
	Position      int64  `bun:"position"`
}

type entryRow struct {
	bun.BaseModel `bun:"table:timeline_entries,alias:e"`
	Asset         string `bun:"asset_id,pk"`
	Sequence      int64  `bun:"sequence,pk"`
	Data          []byte `bun:"data"`
}

func assetRowOf(a asset.Asset) (assetRow, error) {
	doc, err := document(assetDocument{
		Progress:   a.Progress,
		Options:    a.Options,
		Facts:      a.Facts,
		Errors:     a.Errors,
		Recordings: a.Recordings,
		InputInfo:  a.InputInfo,
		Thumbnail:  a.ThumbnailTime,
		Unusual:    a.NonStandard,
		Static:     a.Static,
		Master:     a.Master,
		Limit:      a.Limit,
	})
	if err != nil {
		return assetRow{}, err
	}
	return assetRow{
		ID:          string(a.ID),
		Environment: string(a.Environment),
		Status:      string(a.Status),
		Origin:      string(a.Origin),
		LiveStream:  string(a.LiveStream),
		SourceAsset: string(a.SourceAsset),
		Upload:      string(a.Upload),
		IsLive:      a.IsLive,
		Media:       string(a.Media),
		Index:       a.Index,
		Entries:     a.Entries,
		Document:    doc,
		Unfinished:  a.Unfinished(),
		Exempt:      a.Exempt,
		CreatedAt:   millis(a.CreatedAt),
		UpdatedAt:   millis(a.UpdatedAt),
		Revision:    a.Revision,
	}, nil
}

func (a assetRow) value() (asset.Asset, error) {
	var doc assetDocument
	err := read(a.Document, &doc)
	if err != nil {
		doc, err = assetDocument{}, fmt.Errorf("read asset %s: %w", a.ID, err)
	}
	return asset.Asset{
		ID:            id.Asset(a.ID),
		Environment:   id.Environment(a.Environment),
		Status:        asset.Status(a.Status),
		Progress:      doc.Progress,
		Origin:        asset.Origin(a.Origin),
		LiveStream:    id.LiveStream(a.LiveStream),
		SourceAsset:   id.Asset(a.SourceAsset),
		Upload:        id.Upload(a.Upload),
		IsLive:        a.IsLive,
		Options:       doc.Options,
		Facts:         doc.Facts,
		Errors:        doc.Errors,
		Recordings:    doc.Recordings,
		InputInfo:     doc.InputInfo,
		ThumbnailTime: doc.Thumbnail,
		NonStandard:   doc.Unusual,
		Static:        doc.Static,
		Master:        doc.Master,
		Exempt:        a.Exempt,
		Limit:         doc.Limit,
		Media:         id.Media(a.Media),
		Index:         a.Index,
		Entries:       a.Entries,
		CreatedAt:     moment(a.CreatedAt),
		UpdatedAt:     moment(a.UpdatedAt),
		Revision:      a.Revision,
	}, err
}

func trackRowOf(a id.Asset, t asset.Track) (trackRow, error) {
	doc, err := document(t)
	if err != nil {
		return trackRow{}, err
	}
	speech := ""
	if t.Speech != nil {
		if speech, err = document(t.Speech); err != nil {
			return trackRow{}, err
		}
	}
	return trackRow{
		Speech:    speech,
		ID:        string(t.ID),
		Asset:     string(a),
		Type:      string(t.Type),
		Status:    string(t.Status),
		URL:       t.URL,
		Rendition: t.Rendition,
		Object:    t.Object,
		Channel:   t.Channel,
		Document:  doc,
		CreatedAt: millis(t.CreatedAt),
	}, nil
}

func (tr trackRow) value() (asset.Track, error) {
	var t asset.Track
	err := read(tr.Document, &t)
	if err == nil && tr.Speech != "" {
		err = read(tr.Speech, &t.Speech)
	}
	if err != nil {
		t, err = asset.Track{}, fmt.Errorf("read track %s: %w", tr.ID, err)
	}
	t.ID, t.Asset, t.Type, t.Status = id.Track(tr.ID), id.Asset(tr.Asset), asset.TrackType(tr.Type),
		asset.TrackStatus(tr.Status)
	t.URL, t.Rendition, t.Object, t.Channel, t.CreatedAt = tr.URL, tr.Rendition, tr.Object, tr.Channel,
		moment(tr.CreatedAt)
	return t, err
}
