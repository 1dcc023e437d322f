package hls

import "bytes"

// WithoutDates is a media playlist without EXT-X-PROGRAM-DATE-TIME.
func WithoutDates(playlist []byte) []byte {
	return without(playlist, "#EXT-X-PROGRAM-DATE-TIME:")
}

// Plain is a low-latency media playlist as it is for players that know nothing of partial segments: without them and
// what belongs to them, RFC 8216bis section 4.4.4.9, and without tags of a segment that is not whole yet.
func Plain(playlist []byte) []byte {
	out := without(playlist, "#EXT-X-PART:", "#EXT-X-PART-INF:", "#EXT-X-PRELOAD-HINT:", "#EXT-X-RENDITION-REPORT:",
		"#EXT-X-SERVER-CONTROL:")
	if bytes.HasSuffix(out, []byte("#EXT-X-ENDLIST\n")) {
		return out
	}
	end := 0 // of the last line that is a URI, or of the head
	at, listed := 0, false
	for line := range bytes.Lines(out) {
		at += len(line)
		uri := line[0] != '#'
		if uri || !listed && (bytes.HasPrefix(line, mediaSequence) || bytes.HasPrefix(line, discontinuitySequence)) {
			end, listed = at, listed || uri
		}
	}
	return out[:end]
}

// Asked is a media playlist whose rendition reports name the others as the multivariant playlist did: with a query,
// which begins with its question mark. Players find a report by its address, section 4.4.5.4.
func Asked(playlist []byte, query string) []byte {
	tag := []byte("#EXT-X-RENDITION-REPORT:URI=\"")
	if query == "" || !bytes.Contains(playlist, tag) {
		return playlist
	}
	out := make([]byte, 0, len(playlist)+8*len(query))
	for line := range bytes.Lines(playlist) {
		uri, rest, ok := bytes.Cut(bytes.TrimPrefix(line, tag), []byte{'"'})
		if !ok || !bytes.HasPrefix(line, tag) {
			out = append(out, line...)
			continue
		}
		out = append(append(out, tag...), uri...)
		out = append(append(append(out, query...), '"'), rest...)
	}
	return out
}

func without(playlist []byte, tags ...string) []byte {
	out := make([]byte, 0, len(playlist))
	for line := range bytes.Lines(playlist) {
		keep := true
		for _, t := range tags {
			keep = keep && !bytes.HasPrefix(line, []byte(t))
		}
		if keep {
			out = append(out, line...)
		}
	}
	return out
}
