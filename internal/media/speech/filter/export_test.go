package filter

// Escape is for tests.
func Escape(value string) string { return escape(value) }
