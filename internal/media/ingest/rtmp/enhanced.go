package rtmp

import (
	"slices"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/rtmpwire"
)

// canReconnect is the bit of capsEx of who knows a request to reconnect, section "Reconnect Request".
const canReconnect = 1

// reconnects reports whether an encoder says in its connect command that it can be asked to reconnect.
func reconnects(connect rtmpwire.Object) bool {
	caps := connect.Number("capsEx")
	return caps >= 0 && caps < 1<<31 && int(caps)&canReconnect != 0
}

// enhancements responds to what a connect command says of Enhanced RTMP, section "Enhancing NetConnection connect
// Command", to an encoder that speaks of it: others may stumble over what they do not know.
func enhancements(connect rtmpwire.Object) rtmpwire.Object {
	const (
		canForward = 4 // FourCcInfoMask
		// capsEx: encoders may be asked to reconnect; several tracks are understood, though the first of a kind is
		// kept; modifiers, and among them nanoseconds.
		capsEx = canReconnect | 2 | 4 | 8
	)
	names := []string{"fourCcList", "videoFourCcInfoMap", "audioFourCcInfoMap", "capsEx"}
	if !slices.ContainsFunc(names, func(name string) bool { return connect.Get(name) != nil }) {
		return nil
	}
	var list []any
	infos := func(codes []string) (o rtmpwire.Object) {
		for _, c := range codes {
			list = append(list, c)
			o = append(o, rtmpwire.Property{Name: c, Value: float64(canForward)})
		}
		return o
	}
	video, audio := infos(flv.VideoFourCCs), infos(flv.AudioFourCCs)
	return rtmpwire.Object{
		{Name: names[0], Value: list},
		{Name: names[1], Value: video},
		{Name: names[2], Value: audio},
		{Name: names[3], Value: float64(capsEx)},
	}
}
