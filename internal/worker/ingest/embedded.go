package ingest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"millrace/internal/control/asset"
	"millrace/internal/control/language"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
)

// maxEmbedded bounds how many text tracks of a file are taken over.
const maxEmbedded = 32

// embedded makes text tracks of the subtitles inside a file. Those that are pictures, or can't be read, are told of and
// passed over.
func (w *Worker) embedded(
	ctx context.Context, a asset.Asset, path string, format encode.Format, tracks []encode.Track,
) (made []asset.Track, err error) {
	n := -1
	for _, t := range tracks {
		if t.Kind != encode.Text {
			continue
		}
		if n++; n >= maxEmbedded {
			break
		}
		if !encode.Readable(t.Codec) {
			if err := w.report.warn(ctx, a, asset.InputSubtitles, passedOver(t.Codec)); err != nil {
				return nil, err
			}
			continue
		}
		d, err := w.subtitles(ctx, path, format, n)
		switch {
		case fault.Is(err, fault.Invalid):
			if err = w.report.warn(ctx, a, asset.InputSubtitles,
				fmt.Sprintf("the subtitles in the file's text track %d can't be read: they are passed over",
					n+1)); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		if a.Options.Test {
			d = d.Trim(0, asset.TestLength)
		}
		if d.Len() == 0 {
			continue
		}
		name := "s" + strconv.Itoa(n)
		track := asset.Track{
			Type:         asset.TextTrack,
			Status:       asset.TrackReady,
			TextType:     asset.Subtitles,
			TextSource:   asset.Embedded,
			LanguageCode: languageOf(t.Language),
			Forced:       t.Forced,
			Rendition:    name,
			Object:       objectkey.Track(a.Media, id.Track(name), "vtt"),
			Duration:     d.End().Seconds(),
		}
		title := language.EnglishName(track.LanguageCode)
		if t.Forced {
			title += " (forced)"
		}
		track.Name = freeName(title, slices.Concat(a.Tracks, made))
		if err := w.opt.Store.Put(ctx, track.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
			return nil, fmt.Errorf("store text track: %w", err)
		}
		made = append(made, track)
	}
	return made, nil
}

// passedOver says why subtitles of a codec make no text track.
func passedOver(codec string) string {
	if codec == "eia_608" {
		return "closed captions in a track of their own (c608) are passed over: only those in the pictures are read. " +
			"Convert them to WebVTT or SubRip and add them as a text track"
	}
	return fmt.Sprintf("subtitles of the kind %s are passed over: they are no text", codec)
}

// subtitles are those of one of a file's text streams. fault.Invalid: they can't be read.
func (w *Worker) subtitles(ctx context.Context, path string, format encode.Format, n int) (captions.Document, error) {
	data, err := w.opt.Engine.Subtitles(ctx, path, format, n, captions.MaxInput)
	if err != nil {
		return captions.Document{}, err
	}
	var d captions.Document
	err = w.opt.ProbeLimiter.Examine(ctx, func() (err error) {
		if d, err = captions.Parse(data); err != nil {
			return fault.Wrap(fault.Invalid, err, "the subtitles can't be read: %s", err)
		}
		return nil
	})
	return d, err
}

// languageOf is a file's language as the API has it: "eng" is "en", and what makes no sense is undetermined.
func languageOf(code string) string {
	if other, old := bibliographic[code]; old {
		code = other
	}
	if t, err := language.Parse(code); err == nil {
		return t.String()
	}
	return "und"
}

// bibliographic are the codes of ISO 639-2/B that differ from those of the terms.
//
//nolint:gochecknoglobals // a table
var bibliographic = map[string]string{
	"alb": "sq", "arm": "hy", "baq": "eu", "bur": "my", "chi": "zh", "cze": "cs", "dut": "nl", "fre": "fr", "geo": "ka",
	"ger": "de", "gre": "el", "ice": "is",
	"mac": "mk", "mao": "mi", "may": "ms", "per": "fa", "rum": "ro", "slo": "sk", "tib": "bo", "wel": "cy",
}

// freeName is base, or where another text track has that name, base with the next number that is free.
func freeName(base string, others []asset.Track) string {
	name := base
	for n := 2; slices.ContainsFunc(others, func(t asset.Track) bool {
		return t.Type == asset.TextTrack && t.Name == name
	}); n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	return name
}
