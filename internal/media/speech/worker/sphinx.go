package worker

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// sphinx is the library's functions that are used, of PocketSphinx 5prealpha. ps_add_word is left out: with a language
// model in the binary form it reads behind the end of its tables.
type sphinx struct {
	psArgs        func() uintptr
	parseArgs     func(cfg, definitions uintptr, n int32, args unsafe.Pointer, strict int32) uintptr
	psInit        func(cfg uintptr) uintptr
	psStartStream func(ps uintptr) int32
	psStartUtt    func(ps uintptr) int32
	psEndUtt      func(ps uintptr) int32
	psProcessRaw  func(ps uintptr, samples unsafe.Pointer, n uint64, noSearch, whole int32) int32
	psInSpeech    func(ps uintptr) uint8
	psHypothesis  func(ps uintptr, score unsafe.Pointer) uintptr
	segIter       func(ps uintptr) uintptr
	segNext       func(seg uintptr) uintptr
	segWord       func(seg uintptr) string
	segFrames     func(seg uintptr, first, last unsafe.Pointer)
	segProb       func(seg uintptr, a, l, b unsafe.Pointer) int32
	psLogMath     func(ps uintptr) uintptr
	logExp        func(lm uintptr, p int32) float64
	psConfig      func(ps uintptr) uintptr
	ngramRead     func(cfg uintptr, file string, kind int32, lm uintptr) uintptr
	ngramSet      func(cfg uintptr, models, names, weights unsafe.Pointer, n int32) uintptr
	psSetLM       func(ps uintptr, name string, lm uintptr) int32
	psSetSearch   func(ps uintptr, name string) int32
}

// Kinds of language models' files.
const (
	ngramAuto = 0
	ngramARPA = 1
)

// function binds one function of a library; the error says that the library has none of the name.
type function struct {
	f    any
	name string
}

func bind(library uintptr, all []function) error {
	for _, f := range all {
		at, err := purego.Dlsym(library, f.name)
		if err != nil {
			return fmt.Errorf("find %s: %w", f.name, err)
		}
		purego.RegisterFunc(f.f, at)
	}
	return nil
}

func open(name string) (uintptr, error) {
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, fmt.Errorf("load %s: %w", name, err)
	}
	return h, nil
}

// loadSphinx loads the library.
func loadSphinx() (*sphinx, error) {
	base, err := open("libsphinxbase.so.3")
	if err != nil {
		return nil, err
	}
	pocket, err := open("libpocketsphinx.so.3")
	if err != nil {
		return nil, err
	}
	s := &sphinx{}
	return s, errors.Join(bind(base, []function{
		{&s.parseArgs, "cmd_ln_parse_r"},
		{&s.logExp, "logmath_exp"},
		{&s.ngramRead, "ngram_model_read"},
		{&s.ngramSet, "ngram_model_set_init"},
	}), bind(pocket, []function{
		{&s.psArgs, "ps_args"},
		{&s.psInit, "ps_init"},
		{&s.psStartStream, "ps_start_stream"},
		{&s.psStartUtt, "ps_start_utt"},
		{&s.psEndUtt, "ps_end_utt"},
		{&s.psProcessRaw, "ps_process_raw"},
		{&s.psInSpeech, "ps_get_in_speech"},
		{&s.psHypothesis, "ps_get_hyp"},
		{&s.segIter, "ps_seg_iter"},
		{&s.segNext, "ps_seg_next"},
		{&s.segWord, "ps_seg_word"},
		{&s.segFrames, "ps_seg_frames"},
		{&s.segProb, "ps_seg_prob"},
		{&s.psLogMath, "ps_get_logmath"},
		{&s.psConfig, "ps_get_config"},
		{&s.psSetLM, "ps_set_lm"},
		{&s.psSetSearch, "ps_set_search"},
	}))
}

// cStrings are strings as C has them; keep has to live as long as they are used.
func cStrings(all []string) (pointers []unsafe.Pointer, keep *runtime.Pinner) {
	keep = &runtime.Pinner{}
	for _, s := range all {
		b := append([]byte(s), 0)
		keep.Pin(&b[0])
		pointers = append(pointers, unsafe.Pointer(&b[0])) //nolint:gosec // as C has it
	}
	return append(pointers, nil), keep
}

// recogniser is one decoder of the library.
type recogniser struct {
	lib  *sphinx
	ps   uintptr
	math uintptr
}

var errRefused = errors.New("the library refuses its arguments or its model")

// newRecogniser makes a decoder with arguments as its command line has them.
func (s *sphinx) newRecogniser(args []string) (*recogniser, error) {
	argv, keep := cStrings(append([]string{"millrace-speech"}, args...))
	defer keep.Unpin()
	cfg := s.parseArgs(0, s.psArgs(), int32(len(argv)-1), unsafe.Pointer(&argv[0]), 1) //nolint:gosec // as C has it
	if cfg == 0 {
		return nil, fmt.Errorf("%w: %s", errRefused, strings.Join(args, " "))
	}
	ps := s.psInit(cfg)
	if ps == 0 {
		return nil, fmt.Errorf("%w: %s", errRefused, strings.Join(args, " "))
	}
	return &recogniser{lib: s, ps: ps, math: s.psLogMath(ps)}, nil
}

// phraseWeight is the share of a language model of phrases beside the general one.
const phraseWeight = 0.01

// favour adds a language model of phrases, in ARPA's form, to the general one.
func (r *recogniser) favour(general, phrases string) error {
	cfg := r.lib.psConfig(r.ps)
	models := [2]uintptr{
		r.lib.ngramRead(cfg, general, ngramAuto, r.math), r.lib.ngramRead(cfg, phrases, ngramARPA, r.math),
	}
	if models[0] == 0 || models[1] == 0 {
		return errors.New("the library can't read a language model")
	}
	names, keep := cStrings([]string{"general", "phrases"})
	defer keep.Unpin()
	weights := [2]float32{1 - phraseWeight, phraseWeight}
	set := r.lib.ngramSet(cfg, unsafe.Pointer(&models[0]), unsafe.Pointer(&names[0]), unsafe.Pointer(&weights[0]), 2) //nolint:gosec // as C has it
	if set == 0 || r.lib.psSetLM(r.ps, "both", set) < 0 || r.lib.psSetSearch(r.ps, "both") < 0 {
		return errors.New("the library can't join language models")
	}
	return nil
}

// segment is a word, or what stands between words, with its time in frames since the stream began.
type segment struct {
	word        string
	first, last int32
	confidence  float32
}

// framesPerSecond of the library; a frame has 160 samples.
const (
	framesPerSecond, frameSamples = 100, 160
	samplesPerSecond              = framesPerSecond * frameSamples
)

func (r *recogniser) startStream() { r.lib.psStartStream(r.ps) }

func (r *recogniser) startUtterance() error {
	if r.lib.psStartUtt(r.ps) < 0 {
		return errors.New("the library can't begin an utterance")
	}
	return nil
}

func (r *recogniser) process(samples []int16, whole bool) error {
	if len(samples) == 0 {
		return nil
	}
	flag := int32(0)
	if whole {
		flag = 1
	}
	if r.lib.psProcessRaw(r.ps, unsafe.Pointer(&samples[0]), uint64(len(samples)), 0, flag) < 0 { //nolint:gosec // the library reads so many
		return errors.New("the library can't process sound")
	}
	return nil
}

func (r *recogniser) speaking() bool { return r.lib.psInSpeech(r.ps) != 0 }

// endUtterance gives what was said since it began.
func (r *recogniser) endUtterance() []segment {
	r.lib.psEndUtt(r.ps)
	return r.soFar()
}

// soFar gives what was said since an utterance began, as far as is known.
func (r *recogniser) soFar() []segment {
	if r.lib.psHypothesis(r.ps, nil) == 0 {
		return nil
	}
	var all []segment
	for s := r.lib.segIter(r.ps); s != 0; s = r.lib.segNext(s) {
		var first, last int32
		r.lib.segFrames(s, unsafe.Pointer(&first), unsafe.Pointer(&last)) //nolint:gosec // the library writes both
		p := r.lib.logExp(r.math, r.lib.segProb(s, nil, nil, nil))
		all = append(all, segment{
			word:       strings.Clone(r.lib.segWord(s)),
			first:      first,
			last:       last,
			confidence: float32(min(max(p, 0), 1)),
		})
	}
	return all
}
