package config

import "millrace/internal/spelling"

// suggest ends a sentence about an unknown name with the known one it was probably meant to be.
func suggest(name string, known []string, prefix string) string {
	near := spelling.Nearest(name, known)
	if near == "" {
		return ""
	}
	return "; did you mean " + prefix + near + "?"
}
