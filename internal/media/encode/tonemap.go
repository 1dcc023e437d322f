package encode

import (
	"fmt"

	"millrace/internal/media/frame"
)

// toneMapped is the chain of filters that scales a picture of high dynamic range to width by height pixels and maps its
// light to what any screen shows: BT.709, 8 bits, 4:2:0. What a stream doesn't say of its colours is BT.2100's: without
// it there is no conversion.
func toneMapped(r frame.VideoRange, width, height int) string {
	transfer := "smpte2084"
	if r == frame.HLG {
		transfer = "arib-std-b67"
	}
	return fmt.Sprintf("zscale=w=%d:h=%d:tin=%s:pin=bt2020:min=bt2020nc:p=bt2020:t=linear:npl=100,format=gbrpf32le,"+
		"zscale=p=bt709,tonemap=tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv,format=yuv420p,setsar=1",
		width, height, transfer)
}

// scaled is the chain of filters that brings a picture of any range to width by height pixels of BT.709 or what it has,
// 8 bits, 4:2:0.
func scaled(r frame.VideoRange, width, height int, algorithm string) string {
	if r != frame.SDR {
		return toneMapped(r, width, height)
	}
	return fmt.Sprintf("scale=%d:%d:flags=%s,setsar=1,format=yuv420p", width, height, algorithm)
}
