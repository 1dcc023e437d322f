package app

import (
	"context"
	"net"

	nodes "millrace/internal/control/node"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/whip"
)

// publishers is WHIP as a service: its sockets, and the handler that the web servers serve.
type publishers struct {
	udp    net.PacketConn
	tcp    net.Listener
	server *whip.Server
}

// publishers opens the sockets of WHIP; nil when it has none, or is for other nodes.
func (n *node) publishers(ctx context.Context) (*publishers, error) {
	if !n.cfg.WebRTC() || !n.cfg.Node.Roles.Has(nodes.RoleIngest) {
		return nil, nil //nolint:nilnil // nil is "no WHIP"
	}
	var p publishers
	var err error
	if n.cfg.WebRTCUDPAddr != "" {
		if p.udp, err = n.listenUDP(ctx, "webrtc-udp", n.cfg.WebRTCUDPAddr); err != nil {
			return nil, err
		}
	}
	if n.cfg.WebRTCTCPAddr != "" {
		if p.tcp, err = n.listen(ctx, "webrtc-tcp", n.cfg.WebRTCTCPAddr, n.budgets.webrtc); err != nil {
			return nil, err
		}
	}
	o := whip.Options{
		// the last one has to be encoded again
		Gate: n.live, Logger: n.log, Video: []frame.Codec{frame.H264, frame.AV1, frame.VP9, frame.VP8},
		Public: n.cfg.WebRTCPublicIPs, MaxPerIP: n.cfg.MaxConnectionsPerAddress, Client: n.clients().Of,
	}
	for _, s := range n.cfg.WebRTCICEServers {
		o.ICEServers = append(o.ICEServers, whip.ICEServer{
			URL:        s.URL,
			Username:   s.Username,
			Credential: s.Credential.Reveal(),
		})
	}
	p.server = whip.New(o)
	return &p, nil
}

// Name implements lifecycle.Service.
func (*publishers) Name() string { return "whip" }

// Run implements lifecycle.Service.
func (p *publishers) Run(ctx context.Context) error { return p.server.Serve(ctx, p.udp, p.tcp) }
