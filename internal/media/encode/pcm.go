package encode

import (
	"context"
	"io"
	"strconv"
)

// PCMRate is the rate of what PCM gives, in Hz.
const PCMRate = 16000

// PCMArgs returns the arguments that turn the sound of an MP4 into samples: signed 16 bits, least significant byte
// first, one channel. Sample n is that of n/16000 s; gaps are filled with silence. input is pipe:0 or file: with a
// path. fromStart has times count from where the sound begins, not from its clock's 0.
func PCMArgs(input string, live, fromStart bool) []string {
	args := append(common(), "-threads", "1")
	fill := "aresample=16000:async=1:first_pts=0"
	if live { // it begins with the first packet, and nothing is looked at ahead
		args = append(args, "-probesize", "32", "-analyzeduration", "0")
	} else if !fromStart {
		args = append(args, "-copyts")
	}
	return append(args,
		"-protocol_whitelist", "file,pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", input,
		"-map", "0:a:0", "-vn", "-sn", "-dn", "-af", fill, "-ac", "1", "-ar", strconv.Itoa(PCMRate),
		"-f", "s16le", "-flush_packets", "1", "pipe:1")
}

// PCM decodes the sound of an MP4, whose index comes first, in the background. It takes hardly any of a processor and
// waits for none: what reads it decides its pace.
func (e *Engine) PCM(
	ctx context.Context, input func(context.Context, io.Writer) error, output func(context.Context, io.Reader) error,
) error {
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: PCMArgs("pipe:0", false, false), Limits: e.opts.Limits, Priority: Background,
		Input: input, Output: output,
	}).RunAs(ctx, "sound")
	return blame(err, "the sound can't be decoded")
}

// PCMOfFile is PCM of a file. fromStart has times count from where its sound begins, as with an MP4 that is fragmented.
func (e *Engine) PCMOfFile(
	ctx context.Context, path string, fromStart bool, output func(context.Context, io.Reader) error,
) error {
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: PCMArgs("file:"+path, false, fromStart), Limits: e.opts.Limits,
		Priority: Background, Output: output,
	}).RunAs(ctx, "sound")
	return blame(err, "the sound can't be decoded")
}

// LivePCM decodes sound while it streams, as fragmented MP4 of one stretch without a gap, until input returns.
func (e *Engine) LivePCM(
	ctx context.Context, input func(context.Context, io.Writer) error, output func(context.Context, io.Reader) error,
) error {
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: PCMArgs("pipe:0", true, true),
		Limits:   Limits{AddressSpace: e.opts.Limits.AddressSpace, CPU: liveTime},
		Priority: OnDemand, Input: input, Output: output,
	}).RunAs(ctx, "sound")
	return blame(err, "the sound can't be decoded")
}
