package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/asset"
	"millrace/internal/control/usage"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const usageTag = "Delivery Usage"

type deliveryUsage struct {
	usage usage.API
	now   func() time.Time
}

func (d deliveryUsage) register(on *server) {
	handle(on, route{
		method:     http.MethodGet,
		path:       "/video/v1/delivery-usage",
		id:         "list-delivery-usage",
		tag:        usageTag,
		permission: videoRead,
		summary:    "List delivery usage by asset",
		text: "In seconds of media, most delivered first. Deleted assets are included; assets without deliveries are " +
			"not. " +
			"Usage is counted by the hour, is available some seconds after delivery and is kept for 90 days.",
	}, d.list)
}

// DeliveryReport is what was delivered of an asset.
type DeliveryReport struct {
	LiveStreamID   string           `json:"live_stream_id,omitempty" doc:"The live stream that the asset was recorded from."`
	AssetID        string           `json:"asset_id"`
	Passthrough    string           `json:"passthrough,omitempty"`
	CreatedAt      string           `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	DeletedAt      string           `json:"deleted_at,omitempty" doc:"Seconds since the Unix epoch; only of deleted assets."`
	AssetState     string           `json:"asset_state" enum:"ready,errored,deleted"`
	AssetDuration  float64          `json:"asset_duration" doc:"Seconds."`
	ResolutionTier string           `json:"asset_resolution_tier,omitempty" enum:"audio-only,720p,1080p,1440p,2160p"`
	EncodingTier   string           `json:"asset_encoding_tier" enum:"smart,baseline,premium" deprecated:"true"`
	VideoQuality   string           `json:"asset_video_quality" enum:"basic,plus,premium"`
	Delivered      float64          `json:"delivered_seconds" doc:"Seconds of media delivered to viewers."`
	ByResolution   DeliveredSeconds `json:"delivered_seconds_by_resolution"`
}

// DeliveredSeconds are the seconds delivered by the size of the picture.
type DeliveredSeconds struct {
	Tier2160p float64 `json:"tier_2160p,omitempty" doc:"More than 4,194,304 pixels."`
	Tier1440p float64 `json:"tier_1440p,omitempty" doc:"At most 4,194,304 pixels."`
	Tier1080p float64 `json:"tier_1080p,omitempty" doc:"At most 2,073,600 pixels."`
	Tier720p  float64 `json:"tier_720p,omitempty" doc:"At most 921,600 pixels."`
	AudioOnly float64 `json:"tier_audio_only,omitempty"`
}

// DeliveryUsageListResponse is a page of reports.
type DeliveryUsageListResponse struct {
	Data      []DeliveryReport `json:"data"`
	Total     int              `json:"total_row_count" doc:"The number of reports on all pages."`
	Timeframe []int64          `json:"timeframe" doc:"Start and end of the hours included, in seconds since the Unix epoch."`
	Page      int              `json:"page"`
	Limit     int              `json:"limit"`
}

type usagePageLimit string

const defaultUsageLimit = 100

// Schema documents a page's size.
func (usagePageLimit) Schema(huma.Registry) *huma.Schema {
	return numberSchema(1, maxLimit, defaultUsageLimit)
}

type listUsageInput struct {
	Page         pageNumber     `query:"page" doc:"The page number, from 1."`
	Limit        usagePageLimit `query:"limit" doc:"Reports per page, from 1 to 100."`
	AssetID      string         `query:"asset_id" doc:"Only this asset. Can't be combined with live_stream_id."`
	LiveStreamID string         `query:"live_stream_id" doc:"Only recordings of this live stream."`
	Timeframe    []string       `query:"timeframe[],explode" doc:"Given twice: start and end in seconds since the Unix epoch, widened to whole hours. Default: the hour from 13 to 12 hours ago."`
}

type listUsageOutput struct{ Body DeliveryUsageListResponse }

func (d deliveryUsage) list(ctx context.Context, in *listUsageInput) (*listUsageOutput, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	page, total, q, err := d.usage.List(ctx, environment(ctx), q, d.now())
	return &listUsageOutput{DeliveryUsageListResponse{
		Data:      convert(page, wireReport),
		Total:     total,
		Timeframe: []int64{q.From.Unix(), q.To.Unix()},
		Page:      q.Page,
		Limit:     q.Limit,
	}}, err
}

func (l *listUsageInput) query() (q usage.Query, err error) {
	var problems fault.List
	q = usage.Query{
		Page:       readNumber(&problems, "page", string(l.Page), maxPage, 1),
		Limit:      readNumber(&problems, "limit", string(l.Limit), maxLimit, defaultUsageLimit),
		Asset:      id.Asset(l.AssetID),
		LiveStream: id.LiveStream(l.LiveStreamID),
	}
	switch len(l.Timeframe) {
	case 0:
	case 2:
		q.From, q.To = readTime(&problems, "timeframe[0]", l.Timeframe[0]),
			readTime(&problems, "timeframe[1]", l.Timeframe[1])
	default:
		problems.At("timeframe[]", "must be given twice: the start and the end")
	}
	return q, problems.Err()
}

// maxEpoch is a time in the year 9999, in seconds.
const maxEpoch = 253_402_300_799

func readTime(problems *fault.List, name, text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxEpoch {
		problems.At(name, "must be a time in whole seconds since the Unix epoch")
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

func wireReport(r usage.Report) DeliveryReport {
	a := r.Asset
	out := DeliveryReport{
		LiveStreamID:   string(a.LiveStream),
		AssetID:        string(a.ID),
		Passthrough:    a.Options.Passthrough,
		CreatedAt:      epoch(a.CreatedAt),
		AssetState:     "ready",
		AssetDuration:  finite(a.Facts.Duration),
		ResolutionTier: resolutionTier(a.Options, a.Facts),
		Delivered:      thousandths(r.Seconds.Sum()),
		ByResolution: DeliveredSeconds{
			Tier2160p: thousandths(r.Seconds.Tier2160),
			Tier1440p: thousandths(r.Seconds.Tier1440),
			Tier1080p: thousandths(r.Seconds.Tier1080),
			Tier720p:  thousandths(r.Seconds.Tier720),
			AudioOnly: thousandths(r.Seconds.AudioOnly),
		},
	}
	out.VideoQuality, out.EncodingTier = quality(a.Options, a.LiveStream != "")
	switch {
	case r.Deleted:
		out.AssetState = "deleted"
		if !r.DeletedAt.IsZero() {
			out.DeletedAt = epoch(r.DeletedAt)
		}
	case a.Status == asset.Errored:
		out.AssetState = "errored"
	}
	return out
}
