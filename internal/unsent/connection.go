package unsent

import (
	"context"
	"crypto/tls"
	"net"
)

// connection is one that has several requests at a time. Its accounts are guarded by their budgets' locks.
type connection struct {
	nc              net.Conn
	unsent, refused account
}

// account is that of one of the two budgets.
func (c *connection) account(b *Budget) *account {
	if b.refusal == nil {
		return &c.refused
	}
	return &c.unsent
}

// close ends the connection without another word, which its peer would not read.
func (c *connection) close() {
	if c == nil {
		return
	}
	nc := c.nc
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	_ = nc.Close() // it is given up
}

type connectionKey struct{}

// ConnContext is an http.Server's: what its connections have unsent is counted by connection.
func ConnContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{nc: nc})
}

// connectionOf is the connection of a request; nil: it is not known.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
