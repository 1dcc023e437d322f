package captions

import "strings"

// The bounds of what stands before the first cue.
const (
	maxBlocks    = 64       // STYLE and REGION blocks of a document
	maxBlock     = 16 << 10 // bytes of one block
	maxBlockSize = 64 << 10 // bytes of all blocks, as each segment repeats them
)

// unsafeCSS reports whether a style sheet, in lower case, holds what one from outside may not: each of these could load
// something, run something or end the block. Escapes are refused as they could hide the others.
func unsafeCSS(lower string) bool {
	for _, bad := range [...]string{
		"\\", "@", "<", "-->", "url", "image", "src(", "element(", "paint(", "cross-fade", "expression", "javascript",
		"behavior", "binding",
		"var(", "attr(", "env(",
	} {
		if strings.Contains(lower, bad) {
			return true
		}
	}
	return false
}

// cleanStyle returns the block "STYLE\n…" as it stands when it is safe, else nothing.
func cleanStyle(body []string) string {
	css := strings.Join(body, "\n")
	lower := strings.ToLower(css)
	if unsafeCSS(lower) || len(css) > maxBlock || stripControls(css) != css || !strings.Contains(lower, "::cue") {
		return ""
	}
	return "STYLE\n" + css
}

// cleanRegion returns the block "REGION\n…" with the valid settings of WebVTT 3.4, one to a line, or nothing without an
// identifier.
func cleanRegion(body []string) string {
	var b strings.Builder
	b.WriteString("REGION")
	seen := map[string]bool{}
	for field := range strings.FieldsSeq(strings.Join(body, "\n")) {
		name, value, _ := strings.Cut(field, ":")
		if seen[name] || !validRegionSetting(name, value) {
			continue
		}
		seen[name] = true
		b.WriteString("\n" + name + ":" + value)
	}
	if !seen["id"] || b.Len() > maxBlock {
		return ""
	}
	return b.String()
}

func validRegionSetting(name, value string) bool {
	switch name {
	case "id":
		return validRegionID(value)
	case "width":
		return validPercent(value)
	case "lines":
		return value != "" && len(value) <= 3 && strings.Trim(value, "0123456789") == ""
	case "regionanchor", "viewportanchor":
		x, y, found := strings.Cut(value, ",")
		return found && validPercent(x) && validPercent(y)
	case "scroll":
		return value == "up"
	}
	return false
}
