package rig

import "testing"

// Fleet is several nodes on one PostgreSQL and one S3, which speak to each other. It ends with the test.
type Fleet struct{ Nodes []*Server }

// StartFleet starts n nodes. o is that of each of them; its Pair is Scaled.
func StartFleet(t testing.TB, n int, o Options) *Fleet {
	t.Helper()
	Scaled.need(t)
	o.Pair = Scaled
	o.Args = append([]string{"--internal-addr", "127.0.0.1:0"}, o.Args...)
	f := &Fleet{}
	for range n {
		f.Nodes = append(f.Nodes, Start(t, o))
		o.Beside = f.Nodes[0]
	}
	return f
}

// Hosts are where viewers reach the nodes, as host:port.
func (f *Fleet) Hosts() (hosts []string) {
	for _, s := range f.Nodes {
		hosts = append(hosts, s.HTTP[len("http://"):])
	}
	return hosts
}
