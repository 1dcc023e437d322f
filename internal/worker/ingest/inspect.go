package ingest

import (
	"bytes"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/encode"
)

// unknownFile says what a file seems to be that is no media file.
func unknownFile(head []byte) string {
	text := bytes.ToLower(bytes.TrimSpace(head[:min(len(head), 512)]))
	switch {
	case bytes.HasPrefix(text, []byte("#extm3u")):
		return "the URL leads to a playlist (M3U8): give the URL of a media file"
	case bytes.HasPrefix(text, []byte("<!doctype")), bytes.HasPrefix(text, []byte("<html")), bytes.HasPrefix(text, []byte("<?xml")):
		return "the URL leads to a web page, not to a media file"
	}
	return "the file is of no known media format: MP4, MOV, MPEG-TS and Matroska can be used"
}

// playable refuses what this version can not play as it is.
func playable(info encode.Info) error {
	var found []string
	usable := false
	for _, t := range info.Tracks {
		switch {
		case t.Kind == encode.Video && t.Codec == "h264", t.Kind == encode.Audio && t.Codec == "aac":
			usable = true
		case t.Kind == encode.Video, t.Kind == encode.Audio && !hasAAC(info):
			found = append(found, string(t.Kind)+" "+t.Codec)
		}
	}
	if len(found) > 0 {
		return fault.New(fault.Invalid, "the file has %s: only H.264 video and AAC audio can be played so far; convert it first", strings.Join(found, " and "))
	}
	if !usable {
		return fault.New(fault.Invalid, "the file has neither H.264 video nor AAC audio")
	}
	return nil
}

func hasAAC(info encode.Info) bool {
	for _, t := range info.Tracks {
		if t.Kind == encode.Audio && t.Codec == "aac" {
			return true
		}
	}
	return false
}

// inputInfo is what the API shows of an input file.
func inputInfo(in assetopt.Input, info encode.Info) asset.InputInfo {
	out := asset.InputInfo{Settings: in}
	out.File.ContainerFormat = string(info.Container)
	for _, t := range info.Tracks {
		if t.Kind == encode.Data {
			continue
		}
		long := t.Duration
		if long == 0 {
			long = info.Duration
		}
		out.File.Tracks = append(out.File.Tracks, asset.InputTrack{
			Type: string(t.Kind), Duration: long.Seconds(), Encoding: t.Codec, Width: t.Width, Height: t.Height, FrameRate: t.FrameRate,
			SampleRate: t.SampleRate, SampleSize: t.BitSize, Channels: t.Channels,
		})
	}
	return out
}
