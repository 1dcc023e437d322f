package hlscheck

// Rule says what is demanded and where that stands.
type Rule struct{ Section, Text string }

// Rules is the table of all rules. Sections are of RFC 8216bis (draft-pantos-hls-rfc8216bis) unless another document is
// named; "player" marks what no document demands but a known player needs.
//
//nolint:gochecknoglobals // a table
var Rules = map[string]Rule{
	// Text of playlists.
	"utf8":      {"4.1", "a playlist is UTF-8 without a byte order mark or control characters"},
	"extm3u":    {"4.4.1.1", "the first line is #EXTM3U"},
	"version":   {"7", "EXT-X-VERSION is there once and is high enough for the features used"},
	"tag-known": {"4.1", "tags that begin with #EXT are known ones"},
	"tag-once":  {"4.4.3", "a tag that applies to the whole playlist appears once"},
	"tag-place": {"4.1", "a tag of one kind of playlist does not appear in the other"},
	"attributes": {
		"4.2", "attribute lists are well formed, without repeated names, with values of the right type",
	},
	"attribute-required":  {"4.4", "required attributes are there"},
	"target-duration-tag": {"4.4.3.1", "EXT-X-TARGETDURATION is there, an integer above zero"},
	"media-sequence-tag":  {"4.4.3.2", "EXT-X-MEDIA-SEQUENCE stands before the first segment"},
	"discontinuity-sequence-tag": {
		"4.4.3.3", "EXT-X-DISCONTINUITY-SEQUENCE stands before the first segment and the first EXT-X-DISCONTINUITY, " +
			"in every live playlist but one of text that has no discontinuity",
	},
	"playlist-type": {"4.4.3.5", "EXT-X-PLAYLIST-TYPE is EVENT or VOD, and VOD has EXT-X-ENDLIST"},

	// HTTP.
	"status":             {"6.2.1", "every URI of a playlist returns 200"},
	"playlist-type-http": {"4", "playlists are application/vnd.apple.mpegurl or audio/mpegurl"},
	"media-type-http":    {"6.2.1", "segments have the right Content-Type"},
	"playlist-cache": {
		"6.2.1",
		"playlists may be kept for less than a target duration, segments for long; a blocking response may be kept " +
			"longer",
	},
	"media-cache": {"6.2.1", "segments, parts and init segments are immutable for a year"},
	"cors":        {"player", "every response may be read from another origin"},
	"gzip":        {"6.2.1", "playlists are compressed for who accepts gzip"},
	"unknown-404": {"player", "a playback ID or segment that does not exist is 404, never an empty 200"},
	"head":        {"RFC 9110, 9.3.2", "HEAD responds as GET does, without a body"},
	"ranges":      {"RFC 9110, 14", "a range of a segment is 206 with those bytes, or 200 with all"},

	// Multivariant playlist.
	"independent-segments": {"4.4.2.1", "EXT-X-INDEPENDENT-SEGMENTS is there"},
	"bandwidth": {
		"4.4.6.2", "BANDWIDTH is an upper bound of the peak segment bit rate, and not far above it",
	},
	"average-bandwidth": {
		"4.4.6.2",
		"AVERAGE-BANDWIDTH is not above BANDWIDTH and near the measured average; it is absent only where lower " +
			"variants are encoded when asked for",
	},
	"codecs":     {"4.4.6.2", "CODECS names each codec of the variant and its groups, as the media say"},
	"resolution": {"4.4.6.2", "RESOLUTION is there for video, and is the media's"},
	"frame-rate": {"4.4.6.2", "FRAME-RATE is there for video, and is the media's"},
	"groups": {
		"4.4.6.1.1",
		"group members differ in NAME; at most one is DEFAULT, which is AUTOSELECT; groups that are named exist",
	},
	"language": {"4.4.6.1", "LANGUAGE is there for alternative sounds and for subtitles"},

	"session-data": {"4.4.6.4", "EXT-X-SESSION-DATA has either VALUE or URI, and a JSON resource is JSON"},

	"image-playlist": {
		"image media playlists",
		"an image media playlist has EXT-X-IMAGES-ONLY and tiles of the size that is announced",
	},
	"image-tiles": {
		"image media playlists", "an image is a JPEG with the tiles that are announced, which share its time",
	},

	// One media playlist.
	"target-duration": {"4.4.3.1", "no EXTINF, rounded to the nearest integer, is above the target duration"},
	"uri-unique":      {"6.2.1", "two segments or parts never have the same URI and range"},
	"map":             {"4.4.4.5", "an EXT-X-MAP applies to each fMP4 segment, none to WebVTT"},
	"pdt":             {"4.4.4.6", "EXT-X-PROGRAM-DATE-TIME is there and grows by the durations between"},
	"part-inf":        {"4.4.3.7", "EXT-X-PART-INF is there when parts are"},
	"part-target":     {"4.4.4.9", "no part is longer than PART-TARGET"},
	"part-short":      {"4.4.4.9", "a part is at least 85 % of PART-TARGET but for a last or independent first one"},
	"part-sum":        {"4.4.4.9", "EXTINF is the sum of the segment's parts"},
	"part-old": {
		"4.4.4.9", "a segment that begins more than three target durations from the end has no parts any more",
	},
	"part-kept": {"6.2.2", "the parts of a segment that begins within three target durations of the end stay"},
	"part-hold-back": {
		"4.4.3.8", "PART-HOLD-BACK is there when parts are, at least twice PART-TARGET and better three times",
	},
	"hold-back":          {"4.4.3.8", "HOLD-BACK is at least three target durations"},
	"can-skip-until":     {"4.4.3.8", "CAN-SKIP-UNTIL is at least six target durations"},
	"low-latency-server": {"B.1", "parts, preload hints, blocking reload, delta updates, rendition reports, dates"},
	"window-length":      {"6.2.2", "a live playlist is at least three target durations long (once there was so much)"},

	// From one load to the next.
	"constants": {
		"6.2.1", "TARGETDURATION never changes, nor PART-TARGET, PART-HOLD-BACK, HOLD-BACK, version and playlist type",
	},
	"media-sequence": {"6.2.2", "the media sequence number only grows, by as many as segments were removed"},
	"discontinuity-sequence": {
		"6.2.2", "the discontinuity sequence number grows by as many discontinuities as were removed",
	},
	"entry-immutable": {"6.2.1", "an entry that was shown does not change: URI, duration, tags"},
	"append-only": {
		"6.2.1",
		"segments are only added at the end and removed from the front; EVENT and VOD remove none; nothing follows " +
			"ENDLIST",
	},
	"listed-parts":  {"6.2.1", "a part that was listed is the same in the finished segment"},
	"reload-grows":  {"6.2.2", "a live playlist has a new segment within one and a half target durations"},
	"removal-early": {"6.2.2", "a removed segment stays fetchable for as long as a playlist that listed it was long"},

	// Low latency over HTTP.
	"blocking-reload": {"6.2.5.2", "a blocking reload responds with the segment or part that was asked for"},
	"blocking-time":   {"6.2.5.2", "a blocking reload responds as soon as the part is there"},
	"far-future":      {"6.2.5.2", "a media sequence number too far ahead is 400 at once"},
	"directive":       {"6.2.5.2", "_HLS_part without _HLS_msn and nonsense in either are 400"},
	"preload-hint": {
		"6.2.6",
		"a hinted part can be fetched before it is listed, and becomes the next part or the next segment's first",
	},
	"delta": {"6.2.5.1", "a delta update, expanded, is the full playlist"},
	"delta-map": {
		"player",
		"a delta update begins with the EXT-X-MAP that is in force there: players read it by itself before they join it",
	},
	"skip-boundary": {
		"4.4.5.2", "a delta update skips only what lies beyond the skip boundary, and something when there is such",
	},
	"report": {"4.4.5.4", "a rendition report names each other rendition, its last segment and part"},

	// Bytes.
	"fmp4": {
		"3.1.2",
		"segments and parts are fragmented MP4: moof and mdat, one track, with tfdt; a part begins with a moof",
	},
	"init":             {"3.1.2", "an init segment is ftyp and moov with one track and no samples"},
	"part-bytes":       {"4.4.4.9", "the parts of a segment, one after the other, are the segment"},
	"part-duration":    {"4.4.4.9", "a part's DURATION is its samples'"},
	"segment-duration": {"4.4.4.1", "a segment's EXTINF is its samples'"},
	"tfdt": {
		"ISO 14496-12, 8.8.12", "decode times continue from part to part and segment to segment without gap or overlap",
	},
	"tfdt-break": {"4.4.4.3", "decode times go on forwards over a discontinuity"},
	"independent-part": {
		"4.4.4.9", "a part with INDEPENDENT=YES begins with a sync sample; one that begins with a sync sample says so",
	},
	"segment-sync":    {"4.4.2.1", "each video segment begins with a sync sample"},
	"immutable-bytes": {"6.2.1", "the same URI gives the same bytes"},
	"discontinuity-map": {
		"4.4.4.3", "a change of codec parameters is announced by EXT-X-DISCONTINUITY and a new EXT-X-MAP",
	},
	"webvtt":  {"3.1.4", "WebVTT segments begin with WEBVTT and their cues lie where the segment does"},
	"decodes": {"3", "ffmpeg decodes each segment, with its init segment alone, without a word of complaint"},

	// Across renditions.
	"align-start": {"6.2.4", "segments of the same media sequence number start at the same time, within a frame" +
		", less what is left of a hole in front of sound"},
	"align-pdt": {
		"6.2.4", "segments of the same media sequence number have the same date, less what is left of a hole in front",
	},
	"align-discontinuity": {"6.2.4", "each rendition has the same discontinuities at the same media sequence numbers"},
	"align-target":        {"6.2.4", "each rendition has the same target duration"},
	"align-ends":          {"6.2.4", "renditions begin and end together"},
}
