package spelling

// Suggest ends a sentence about an unknown name with the known one that it was probably meant to be, behind a prefix.
func Suggest(name string, known []string, prefix string) string {
	near := Nearest(name, known)
	if near == "" {
		return ""
	}
	return "; did you mean " + prefix + near + "?"
}
