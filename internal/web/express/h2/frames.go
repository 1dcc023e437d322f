package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

const (
	frameHead     = 9         // bytes of a frame's head, RFC 9113 section 4.1
	frameSize     = 16384     // of the largest frame, here and there, unless a peer allows more
	initialWindow = 1<<16 - 1 // of flow control, RFC 9113 section 6.9.2
	largestWindow = 1<<31 - 1
	received      = 1 << 20 // the window for bodies of requests, of each stream and of a connection
)

// appendHead appends a frame's head.
func appendHead(b []byte, size int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendSettings(b []byte, all ...http2.Setting) []byte {
	b = appendHead(b, 6*len(all), http2.FrameSettings, 0, 0)
	for _, s := range all {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(s.ID)), s.Val)
	}
	return b
}

func appendSettingsAck(b []byte) []byte {
	return appendHead(b, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
}

func appendPingAck(b []byte, data [8]byte) []byte {
	return append(appendHead(b, len(data), http2.FramePing, http2.FlagPingAck, 0), data[:]...)
}

func appendWindowUpdate(b []byte, stream uint32, more uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, 4, http2.FrameWindowUpdate, 0, stream), more)
}

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendHead(b, 4, http2.FrameRSTStream, 0, stream), uint32(code))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode) []byte {
	b = binary.BigEndian.AppendUint32(appendHead(b, 8, http2.FrameGoAway, 0, 0), last)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

// frame does what a frame asks for. Its error is a http2.StreamError, a http2.ConnectionError, or errPassed.
func (c *conn) frame(f http2.Frame) error {
	settings, first := f.(*http2.SettingsFrame)
	if !c.in.greeted && (!first || settings.IsAck()) { // RFC 9113 section 3.4
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.in.greeted = true
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.RSTStreamFrame:
		return c.resetByPeer(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.PingFrame:
		return c.ping(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID { // RFC 7540 section 5.3.1
			return streamError(f.StreamID, http2.ErrCodeProtocol)
		}
	case *http2.GoAwayFrame: // RFC 9113 section 6.8
		c.mu.Lock()
		c.streams.leave()
		quiet := c.streams.quiet()
		c.mu.Unlock()
		if quiet {
			c.stop()
		}
	case *http2.PushPromiseFrame, *http2.ContinuationFrame: // RFC 9113 sections 8.4 and 6.10
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return c.in.calm.vain(1) // what has another type is ignored, RFC 9113 section 4.1
}

func streamError(id uint32, code http2.ErrCode) error {
	return http2.StreamError{StreamID: id, Code: code}
}

// settings takes those of the peer, RFC 9113 section 6.5.
func (c *conn) settings(f *http2.SettingsFrame) error {
	if err := c.in.calm.vain(1); err != nil || f.IsAck() {
		return err
	}
	const most = 100 // six are defined
	if f.NumSettings() > most {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID { //nolint:exhaustive // the others are about what is never sent
		case http2.SettingHeaderTableSize:
			c.out.table.set(s.Val)
		case http2.SettingInitialWindowSize:
			if !c.streams.setInitial(int64(s.Val)) {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
		}
		return nil
	})
	if err == nil {
		c.streams.acks++ // RFC 9113 section 6.5.3
	}
	return err
}

// ping answers one, RFC 9113 section 6.7.
func (c *conn) ping(f *http2.PingFrame) error {
	if err := c.in.calm.vain(1); err != nil || f.IsAck() {
		return err
	}
	return c.answer(func(b []byte) []byte { return appendPingAck(b, f.Data) })
}

// answer has a frame sent that the peer has asked for. Where it does not read these, they may not be more and more.
func (c *conn) answer(add func([]byte) []byte) error {
	c.mu.Lock()
	c.streams.control = add(c.streams.control)
	waiting := len(c.streams.control)
	c.mu.Unlock()
	if waiting > mostControl/2 {
		c.out.flushUnlessBusy()
	}
	if waiting > mostControl {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// windowUpdate lets more be sent, RFC 9113 section 6.9.
func (c *conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	if err := c.in.calm.vain(1); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID == 0 {
		if !c.streams.grow(int64(f.Increment)) {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		return nil
	}
	st := c.streams.open[f.StreamID]
	if st == nil {
		return c.streams.closed(f.StreamID)
	}
	if st.window += int64(f.Increment); st.window > largestWindow {
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	st.wake()
	return nil
}

// resetByPeer ends a stream, RFC 9113 section 6.4.
func (c *conn) resetByPeer(f *http2.RSTStreamFrame) error {
	c.mu.Lock()
	st := c.streams.open[f.StreamID]
	if st == nil {
		err := c.streams.closed(f.StreamID)
		c.mu.Unlock()
		if err != nil {
			return err
		}
		return c.in.calm.vain(1)
	}
	c.streams.broken(st)
	c.mu.Unlock()
	return c.in.calm.reset()
}

// wrong resets a stream on which its peer has done what it may not, RFC 9113 section 5.4.2. That counts as if the peer
// had reset it: it makes as much work.
func (c *conn) wrong(bad http2.StreamError) error {
	c.mu.Lock()
	if bad.StreamID%2 == 0 { // no client has such streams
		c.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.streams.last = max(c.streams.last, bad.StreamID)
	c.streams.reset(bad.StreamID, bad.Code)
	waiting := len(c.streams.control)
	c.mu.Unlock()
	if waiting > mostControl {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return c.in.calm.reset()
}
