package nal

// aspects is ITU-T H.264 table E-1 and H.265 table E.1, sample aspect ratio by aspect_ratio_idc.
var aspects = [...][2]int{ //nolint:gochecknoglobals // a table
	{1, 1},
	{1, 1},
	{12, 11},
	{10, 11},
	{16, 11},
	{40, 33},
	{24, 11},
	{20, 11},
	{32, 11},
	{80, 33},
	{18, 11},
	{15, 11},
	{64, 33},
	{160, 99},
	{4, 3},
	{3, 2},
	{2, 1},
}

// Aspect is the shape of a pixel; 1 and 1 when it is not said.
func Aspect(idc uint8, sarWidth, sarHeight uint16) (w, h int) {
	if idc == 255 && sarWidth > 0 && sarHeight > 0 {
		return int(sarWidth), int(sarHeight)
	}
	if int(idc) < len(aspects) {
		return aspects[idc][0], aspects[idc][1]
	}
	return 1, 1
}
