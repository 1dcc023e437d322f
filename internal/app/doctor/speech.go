package doctor

import (
	"context"
	"errors"

	"millrace/internal/media/speech"
)

// SpeechEngine checks that what makes subtitles of speech is there: a program with its library and model, or a server
// at its address.
type SpeechEngine struct {
	Engine     speech.Engine
	Load       Load
	Configured bool // the settings name it; not the engine of every machine, which may be missing where nobody wants it
}

// trier is an engine that is not only asked whether it runs, but has to recognise something.
type trier interface {
	Try(ctx context.Context) error
}

// Name implements Check.
func (s SpeechEngine) Name() string { return "speech " + s.Engine.Name() }

// Run implements Check.
func (s SpeechEngine) Run(ctx context.Context) Finding {
	can, err := s.Engine.Abilities()
	if t, tries := s.Engine.(trier); err == nil && tries {
		err = t.Try(ctx)
	} else if err == nil {
		err = s.Engine.Probe(ctx)
	}
	switch {
	case errors.Is(err, speech.ErrNotInTime):
		return s.Load.late(s.Engine.Name())
	case errors.Is(err, speech.ErrBusy):
		return warning("Run millrace doctor again when the server has less to do; if it stays so, give it a smaller "+
			"model "+
			"or a faster machine.", "%s could not be tried: %v", s.Engine.Name(), err)
	case err != nil && s.Configured:
		return problem("Start the server, or correct the setting: speech-servers, or speech-ffmpeg-model for the "+
			"engine ffmpeg.", "%s does not recognise speech: %v", s.Engine.Name(), err)
	case err != nil:
		return warning("Install what is missing if live streams or assets shall have generated subtitles.",
			"%s does not recognise speech: %v", s.Engine.Name(), err)
	case len(can.Languages) == 1 && can.Languages[0] != speech.AnyLanguage:
		return ok("%s recognises speech in the language %s", s.Engine.Name(), can.Languages[0])
	}
	return ok("%s recognises speech", s.Engine.Name())
}
