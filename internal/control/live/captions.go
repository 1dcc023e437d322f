package live

import (
	"context"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// SetGeneratedSubtitles replaces what is recognised of a stream's sound; nothing clears it. Event updated;
// fault.Conflict while a broadcast runs.
func (s *Service) SetGeneratedSubtitles(
	ctx context.Context, env id.Environment, stream id.LiveStream, in []assetopt.GeneratedSubtitle, now time.Time,
) (Stream, error) {
	var l fault.List
	assetopt.CheckLiveGenerated(&l, "generated_subtitles", in)
	if err := l.Err(); err != nil {
		return Stream{}, err
	}
	if err := s.recognition.Check(ctx, env, "generated_subtitles", in); err != nil {
		return Stream{}, err
	}
	return s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		if st.ActiveAsset != "" {
			return nil, fault.At(fault.Conflict, "generated_subtitles",
				"can't be changed while the live stream is active")
		}
		set := st.Settings
		set.GeneratedSubtitles = in
		var l fault.List
		set.checkCaptions(&l)
		if err := l.Err(); err != nil {
			return nil, err
		}
		st.Settings.GeneratedSubtitles = set.named().GeneratedSubtitles
		return []string{EventUpdated}, nil
	})
}
