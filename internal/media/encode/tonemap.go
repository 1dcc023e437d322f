package encode

import (
	"fmt"

	"millrace/internal/media/frame"
)

// toneMapped is the chain of filters that maps the light of a picture of high dynamic range to what any screen shows:
// BT.709, 8 bits, 4:2:0. size, as "w=640:h=360:", scales it on the way; empty: it stays as large as it is. What a
// stream doesn't say of its colours is BT.2100's: without it there is no conversion.
func toneMapped(r frame.VideoRange, size string) string {
	transfer := "smpte2084"
	if r == frame.HLG {
		transfer = "arib-std-b67"
	}
	return fmt.Sprintf("zscale=%stin=%s:pin=bt2020:min=bt2020nc:p=bt2020:t=linear:npl=100,format=gbrpf32le,"+
		"zscale=p=bt709,tonemap=tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv,format=yuv420p", size, transfer)
}

// scaled is the chain of filters that brings a picture of any range to width by height square pixels, 8 bits, 4:2:0.
func scaled(r frame.VideoRange, width, height int, algorithm string) string {
	if r != frame.SDR {
		return toneMapped(r, fmt.Sprintf("w=%d:h=%d:", width, height)) + ",setsar=1"
	}
	return fmt.Sprintf("scale=%d:%d:flags=%s,setsar=1,format=yuv420p", width, height, algorithm)
}

// shown ends a chain of filters with what brings the light of a picture to a screen; nothing for SDR.
func shown(r frame.VideoRange) string {
	if r == frame.SDR {
		return ""
	}
	return "," + toneMapped(r, "")
}
