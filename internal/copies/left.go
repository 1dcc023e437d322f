package copies

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
)

// Copy is what a node has copied of a broadcast.
type Copy struct {
	Own, Derived []byte // the records of its journals
	Generation   int64  // of the latest writer that was copied
	age          time.Duration
}

const (
	// askTime bounds how long nodes are asked for a copy, and restTime how long the others still are once one has it.
	askTime, restTime = 2 * time.Second, 200 * time.Millisecond
	// maxCopy bounds what a node may send.
	maxCopy = 2*mostOfOne + 16<<20
	maxZone = 100
)

// better reports whether a is the one to go on with.
func (c *Copy) better(than *Copy) bool {
	if c.Generation != than.Generation {
		return c.Generation > than.Generation
	}
	return c.age < than.age
}

// Left is what was copied of a broadcast by this node and by others that live: the copy of the latest writer, of which
// was heard last. false: there is none, or nobody responds in time.
func (s *Service) Left(ctx context.Context, m id.Media) (best Copy, found bool) {
	best, found = s.store.copy(m)
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	all, err := s.opt.Rows.Nodes(ctx)
	if err != nil {
		s.opt.Logger.WarnContext(ctx, "other nodes can't be asked for their copy of a broadcast", "error", err)
		return best, found
	}
	type result struct {
		copy Copy
		err  error
	}
	results, asked := make(chan result, len(all)), 0
	for i := range all {
		n := &all[i]
		if n.Name == s.opt.Self.Node || n.State != node.Alive || n.AdvertiseURL == "" {
			continue
		}
		asked++
		go func() {
			var r result
			r.err = fault.Guard(func() (err error) {
				r.copy, err = s.ask(ctx, follow.Node{ID: n.Name, URL: n.AdvertiseURL}, m)
				return err
			})
			results <- r
		}()
	}
	rest := time.NewTimer(askTime)
	defer rest.Stop()
	if found {
		rest.Reset(restTime)
	}
	for ; asked > 0; asked-- {
		select {
		case r := <-results:
			if r.err == nil && (!found || r.copy.better(&best)) {
				best = r.copy
				found = true
				rest.Reset(restTime)
			}
		case <-rest.C:
			return best, found
		case <-ctx.Done():
			return best, found
		}
	}
	return best, found
}

func (s *Service) get(ctx context.Context, to follow.Node, q url.Values) (*http.Response, error) {
	r := &http.Request{
		Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: Path, RawQuery: q.Encode()},
	}
	return s.opt.Peer.Do(ctx, to, r.WithContext(ctx)) //nolint:wrapcheck // callers say what it was about
}

// ask asks a node for its copy of a broadcast.
func (s *Service) ask(ctx context.Context, to follow.Node, m id.Media) (c Copy, err error) {
	res, err := s.get(ctx, to, url.Values{"media": {string(m)}})
	if err != nil {
		return c, err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode != http.StatusOK {
		return c, failure(res)
	}
	age, err := strconv.ParseInt(res.Header.Get(ageHeader), 10, 64)
	own, failed := strconv.ParseInt(res.Header.Get(ownHeader), 10, 64)
	c.Generation, _ = strconv.ParseInt(res.Header.Get(generationHeader), 10, 64)
	if err != nil || failed != nil || age < 0 || own < 0 || age > keptFor.Milliseconds() ||
		res.ContentLength > maxCopy {
		return c, fault.New(fault.Internal, "node %s gave a copy that can't be read", to.ID)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxCopy+1))
	switch {
	case err != nil:
		return c, fmt.Errorf("read copy: %w", err)
	case len(data) > maxCopy || own > int64(len(data)):
		return c, fault.New(fault.Internal, "node %s gave a copy that can't be read", to.ID)
	}
	c.Own, c.Derived, c.age = data[:own:own], data[own:], time.Duration(age)*time.Millisecond
	return c, nil
}

// askZone asks a node where it is.
func (s *Service) askZone(ctx context.Context, to follow.Node) (zone string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	res, err := s.get(ctx, to, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	zone = res.Header.Get(zoneHeader)
	if res.StatusCode != http.StatusNoContent || len(zone) > maxZone {
		return "", fault.New(fault.Internal, "node %s does not say where it is", to.ID)
	}
	return zone, nil
}

// stats count what is copied.
type stats struct {
	sent, taken, dropped, late, refused atomic.Int64
	lags                                [lagSteps + 1]atomic.Int64
	lagSum                              atomic.Int64 // nanoseconds
}

const lagSteps = 11

// lagBounds are the bounds of how long records take until the other node has them.
func lagBounds() [lagSteps]time.Duration {
	return [lagSteps]time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
		5 * time.Second,
	}
}

func (s *stats) lag(d time.Duration) {
	i, bounds := 0, lagBounds()
	for i < lagSteps && d > bounds[i] {
		i++
	}
	s.lags[i].Add(1)
	s.lagSum.Add(int64(d))
}

// Stats are what metrics say.
type Stats struct {
	Feeds, Copied int   // broadcasts of this node, and those of which another one has all
	Kept          int   // broadcasts of others that are copied here
	Bytes         int64 // that copies take here, of this node's and of others'
	Sent, Taken   int64 // bytes to and from other nodes
	Dropped       int64 // bytes that were left out, since copies are bounded
	Late          int64 // publications that did not wait any longer for the other node
	Refused       int64 // broadcasts for which another node had no place
	Lags          map[float64]uint64
	LagCount      uint64
	LagSum        float64 // seconds
}

// Stats says how much is copied.
func (s *Service) Stats() Stats {
	out := Stats{
		Sent: s.stats.sent.Load(), Taken: s.stats.taken.Load(), Dropped: s.stats.dropped.Load(),
		Late: s.stats.late.Load(), Refused: s.stats.refused.Load(), Lags: map[float64]uint64{},
		LagSum: time.Duration(s.stats.lagSum.Load()).Seconds(),
	}
	for i, most := range lagBounds() {
		out.LagCount += uint64(s.stats.lags[i].Load())
		out.Lags[most.Seconds()] = out.LagCount
	}
	out.LagCount += uint64(s.stats.lags[lagSteps].Load())
	out.Kept, out.Bytes = s.store.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Feeds, out.Bytes = len(s.feeds), out.Bytes+s.bytes
	for f := range s.feeds {
		if f.link != nil && f.Copied() {
			out.Copied++
		}
	}
	return out
}
