package doctor

import (
	"context"
	"errors"

	"millrace/internal/media/speech"
)

// SpeechEngine checks that what makes subtitles of speech is there: a program with its library and model, or a server at its address.
type SpeechEngine struct {
	Engine     speech.Engine
	Load       Load
	Configured bool // the settings name it; not the engine of every machine, which may be missing where nobody wants it
}

// Name implements Check.
func (s SpeechEngine) Name() string { return "speech " + s.Engine.Name() }

// Run implements Check.
func (s SpeechEngine) Run(ctx context.Context) Finding {
	can, err := s.Engine.Abilities()
	if err == nil {
		err = s.Engine.Probe(ctx)
	}
	switch {
	case errors.Is(err, speech.ErrNotInTime):
		return s.Load.late(s.Engine.Name())
	case err != nil && s.Configured:
		return problem("Start the server, or correct the setting: speech-servers, or speech-ffmpeg-model for the engine ffmpeg.", "%s does not recognise speech: %v", s.Engine.Name(), err)
	case err != nil:
		return warning("Install what is missing if live streams or assets shall have generated subtitles.",
			"%s does not recognise speech: %v", s.Engine.Name(), err)
	case len(can.Languages) == 1 && can.Languages[0] != speech.AnyLanguage:
		return ok("%s recognises speech in the language %s", s.Engine.Name(), can.Languages[0])
	}
	return ok("%s recognises speech", s.Engine.Name())
}
