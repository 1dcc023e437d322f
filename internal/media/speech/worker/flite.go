package worker

import "strings"

// loadGuess loads the rules of Flite, which give sounds for any letters.
func loadGuess() (func(word string) string, error) {
	base, err := open("libflite.so.1")
	if err != nil {
		return nil, err
	}
	lexicon, err := open("libflite_cmulex.so.1")
	if err != nil {
		return nil, err
	}
	var (
		start    func() int32
		makeLex  func() uintptr
		look     func(lex uintptr, word string, part, features uintptr) uintptr
		car, cdr func(v uintptr) uintptr
		text     func(v uintptr) string
		drop     func(v uintptr)
	)
	err = bind(base, []function{
		{&start, "flite_init"},
		{&look, "lex_lookup"},
		{&car, "val_car"},
		{&cdr, "val_cdr"},
		{&text, "val_string"},
		{&drop, "delete_val"},
	})
	if err != nil {
		return nil, err
	}
	if err = bind(lexicon, []function{{&makeLex, "cmu_lex_init"}}); err != nil {
		return nil, err
	}
	start()
	lex := makeLex()
	return func(word string) string {
		list := look(lex, word, 0, 0)
		if list == 0 {
			return ""
		}
		defer drop(list)
		var sounds []string
		for v := list; v != 0; v = cdr(v) {
			sound := strings.ToUpper(strings.TrimRight(text(car(v)), "012"))
			if sound == "AX" { // the model knows it by another name
				sound = "AH"
			}
			sounds = append(sounds, sound)
		}
		return strings.Join(sounds, " ")
	}, nil
}
