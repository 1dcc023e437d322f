package access

import (
	"sync"
	"time"

	"millrace/internal/id"
)

const (
	// freeOfToken is how many wrong secrets of one token, freeOfAddress how many of any, an address may send before it
	// has to wait.
	freeOfToken, freeOfAddress = 5, 25
	// firstWait doubles with each further one, up to longestWait.
	firstWait, longestWait = time.Second, time.Minute
	// forgetAfter is how long after the last wrong secret an address is as good as new.
	forgetAfter = 10 * time.Minute
	maxFailures = 16384 // addresses and tokens
)

// failures makes those wait who send wrong secrets, by the address they come from: another address is not locked out by
// them, and neither is one whose secret is known to be right. How many addresses can work together is bounded by the
// line that secrets are hashed in.
type failures struct {
	mu   sync.Mutex
	seen map[source]failure
}

// source is an address, with one token or with all.
type source struct {
	from  string
	token id.Token
}

type failure struct {
	count  int
	trying int // secrets that are being checked, each of which may turn out to be wrong
	last   time.Time
	until  time.Time // nothing is checked before
}

func newFailures() *failures { return &failures{seen: map[source]failure{}} }

func sources(c Credentials) [2]source { return [2]source{{c.From, c.Token}, {from: c.From}} }

// wait is how long nothing of an address is checked; 0: now.
func (f *failures) wait(c Credentials, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waitOf(c, now)
}

// waitOf needs the lock.
func (f *failures) waitOf(c Credentials, now time.Time) (longest time.Duration) {
	for _, s := range sources(c) {
		longest = max(longest, f.seen[s].until.Sub(now))
	}
	return longest
}

// try counts a secret that is going to be checked, which ends with done. wait is how long nothing of an address is
// checked; 0: now. What is being checked counts as wrong: of many that come at once no more are let in than of as many
// that come one by one.
func (f *failures) try(c Credentials, now time.Time) (done func(), wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.makeRoom(now)
	wait = f.waitOf(c, now)
	for i, s := range sources(c) {
		if v := f.seen[s]; wait <= 0 && v.trying > 0 && v.count+v.trying >= freeOf(i) {
			wait = firstWait
		}
	}
	if wait > 0 {
		return nil, wait
	}
	f.add(c, 1)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.add(c, -1)
	}, 0
}

// freeOf is how many wrong secrets are free of each of an address's sources.
func freeOf(source int) int { return [2]int{freeOfToken, freeOfAddress}[source] }

// add counts what is being tried. It needs the lock.
func (f *failures) add(c Credentials, n int) {
	for _, s := range sources(c) {
		v, ok := f.seen[s]
		if v.trying += n; v.trying < 0 || !ok && n < 0 { // it was forgotten meanwhile
			continue
		}
		if f.seen[s] = v; v == (failure{}) {
			delete(f.seen, s)
		}
	}
}

// failed counts a wrong secret.
func (f *failures) failed(c Credentials, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.makeRoom(now)
	for i, s := range sources(c) {
		v := f.seen[s]
		if now.Sub(v.last) > forgetAfter {
			v = failure{trying: v.trying}
		}
		v.count++
		v.last = now
		if over := v.count - freeOf(i); over >= 0 {
			v.until = now.Add(min(firstWait<<min(over, 16), longestWait))
		}
		f.seen[s] = v
	}
}

// passed forgets the wrong secrets of an address for a token, since it has the right one. Those of other tokens stay.
func (f *failures) passed(c Credentials) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := sources(c)[0]
	if trying := f.seen[own].trying; trying > 0 {
		f.seen[own] = failure{trying: trying}
	} else {
		delete(f.seen, own)
	}
}

// makeRoom forgets what is old when there is much, and any when there is too much.
func (f *failures) makeRoom(now time.Time) {
	if len(f.seen) < maxFailures {
		return
	}
	for s, v := range f.seen {
		if now.Sub(v.last) > longestWait {
			delete(f.seen, s)
		}
	}
	for s := range f.seen {
		if len(f.seen) < maxFailures {
			return
		}
		delete(f.seen, s)
	}
}
