//go:build !linux

package rtmp

import (
	"io"
	"net"
)

func reader(nc net.Conn) io.Reader { return nc }
