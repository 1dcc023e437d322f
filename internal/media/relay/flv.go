package relay

import (
	"slices"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/rtmpwire"
)

// flvCarries says why a track can not go over RTMP.
func flvCarries(c frame.Config) error {
	if flv.Carries(c.Codec) {
		return nil
	}
	return impossible("RTMP does not carry %s of codec %q", c.Kind, c.Codec)
}

// fourCCs are what a connect command says that may come.
func fourCCs() []any {
	var all []any
	for _, name := range slices.Concat(flv.VideoFourCCs, flv.AudioFourCCs) {
		all = append(all, name)
	}
	return all
}

func enhanced(configs []frame.Config) bool {
	return slices.ContainsFunc(configs, func(c frame.Config) bool { return flv.FourCC(c.Codec) != "" })
}

// metadata is the onMetaData message, FLV annex E.5, of the tracks that are known.
func metadata(configs [2]*frame.Config) []byte {
	o := rtmpwire.ECMAArray{{Name: "encoder", Value: "millrace"}}
	add := func(name string, v any) { o = append(o, rtmpwire.Property{Name: name, Value: v}) }
	if v := configs[frame.Video]; v != nil {
		add("width", float64(v.Width))
		add("height", float64(v.Height))
		if v.FrameRate > 0 {
			add("framerate", v.FrameRate)
		}
		add("videocodecid", flv.CodecID(v.Codec))
	}
	if a := configs[frame.Audio]; a != nil {
		add("audiosamplerate", float64(a.SampleRate))
		add("audiochannels", float64(a.Channels))
		add("audiosamplesize", 16.0)
		add("stereo", a.Channels > 1)
		add("audiocodecid", flv.CodecID(a.Codec))
	}
	return rtmpwire.AppendAMF0(nil, "@setDataFrame", "onMetaData", o)
}
