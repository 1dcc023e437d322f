package internode

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/id"
)

// scheme is the authentication scheme of a request's Authorization header.
const scheme = "Millrace-Node"

const (
	// protocol is the version of signatures. What is signed is in one of the versions that are Spoken.
	protocol = "1"

	keyIDDigits, nonceDigits = 16, 32
	maxNode                  = 100 // characters of a node's name: config's limit
	maxCredentials           = 512 // bytes of an Authorization header
)

// Key authenticates nodes to each other: all nodes of one database have the same one.
type Key [32]byte

// String keeps the key out of logs.
func (Key) String() string { return "key of nodes" }

// GoString keeps the key out of logs.
func (k Key) GoString() string { return k.String() }

// signer makes MACs with a key. Its methods may be called at the same time.
type signer struct {
	id   string    // tells keys apart, and says nothing else about them
	macs sync.Pool // of hash.Hash
}

func newSigner(k Key) *signer {
	s := &signer{macs: sync.Pool{New: func() any { return hmac.New(sha256.New, k[:]) }}}
	s.id = s.mac("id")[:keyIDDigits]
	return s
}

// mac is HMAC-SHA-256 in hexadecimal digits. What is signed begins with its kind, so that none passes for another.
func (s *signer) mac(text string) string {
	m := s.macs.Get().(hash.Hash) //nolint:forcetypeassert // the pool has nothing else
	defer s.macs.Put(m)
	m.Reset()
	_, _ = m.Write([]byte(text)) // never fails
	var sum [sha256.Size]byte
	return hex.EncodeToString(m.Sum(sum[:0]))
}

// signature is what the Authorization header of a request says.
type signature struct {
	keyID    string
	at       time.Time // whole milliseconds
	nonce    string    // hexadecimal digits
	from, to id.Node
	digest   string // SHA-256 of the body in hexadecimal digits; noBody
	mac      string
}

// noBody is the digest of a request that has none.
const noBody = "-"

// text is the signed text of a request. Only the target, which comes last, may have characters that separate.
func (s *signature) text(method, target string) string {
	return "request\n" + protocol + "\n" + strconv.FormatInt(s.at.UnixMilli(), 10) + "\n" + s.nonce + "\n" +
		string(s.from) + "\n" + string(s.to) + "\n" + s.digest + "\n" + method + "\n" + target
}

// answerText is the signed text of what this package itself responds to a request: its nonce is in it, so that it is
// the response to no other.
func answerText(nonce string, status int, body []byte) string {
	return "answer\n" + protocol + "\n" + nonce + "\n" + strconv.Itoa(status) + "\n" + string(body)
}

// sign is the Authorization header of a request.
func (s *signer) sign(sig signature, method, target string) string {
	sig.keyID = s.id
	sig.mac = s.mac(sig.text(method, target))
	return sig.header()
}

func (s *signature) header() string {
	return scheme + " " + strings.Join([]string{
		protocol, s.keyID, strconv.FormatInt(s.at.UnixMilli(), 10), s.nonce, string(s.from), string(s.to),
		s.digest, s.mac,
	}, ":")
}

// right reports whether the key has signed a request with this signature.
func (s *signer) right(sig *signature, method, target string) bool {
	return subtle.ConstantTimeCompare([]byte(s.mac(sig.text(method, target))), []byte(sig.mac)) == 1
}

var (
	errUnsigned = errors.New("the request has no signature of a node")
	errProtocol = errors.New("the request is signed by another version of the protocol")
)

// parseSignature reads the Authorization header of a request: errUnsigned or errProtocol where it is none that can be
// checked.
func parseSignature(header string) (sig signature, err error) {
	if len(header) > maxCredentials {
		return sig, errUnsigned
	}
	credentials, ok := strings.CutPrefix(header, scheme+" ")
	if !ok {
		return sig, errUnsigned
	}
	version, rest, _ := strings.Cut(credentials, ":")
	if version != protocol {
		return sig, errProtocol
	}
	const fields = 7
	f := strings.Split(rest, ":")
	if len(f) != fields {
		return sig, errUnsigned
	}
	ms, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || ms < 0 || strconv.FormatInt(ms, 10) != f[1] || !isHex(f[0], keyIDDigits) ||
		!isHex(f[2], nonceDigits) || !isNode(f[3]) || !isNode(f[4]) || f[5] != noBody && !isHex(f[5], 2*sha256.Size) ||
		!isHex(f[6], 2*sha256.Size) {
		return sig, errUnsigned
	}
	return signature{
		keyID: f[0], at: time.UnixMilli(ms), nonce: f[2], from: id.Node(f[3]), to: id.Node(f[4]), digest: f[5],
		mac: f[6],
	}, nil
}

// isHex reports whether s has as many lower-case hexadecimal digits and nothing else.
func isHex(s string, digits int) bool {
	return len(s) == digits && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// isNode reports whether s can be the name of a node, as the setting node-id takes it.
func isNode(s string) bool {
	return s != "" && len(s) <= maxNode && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
}

func newNonce() string {
	var b [nonceDigits / 2]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// digest is that of a body.
func digest(body []byte) string {
	if len(body) == 0 {
		return noBody
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// repeatable reports whether a request with this method changes nothing, so that the same one again does no harm.
func repeatable(method string) bool { return method == http.MethodGet || method == http.MethodHead }
