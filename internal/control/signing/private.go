package signing

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"

	"millrace/internal/fault"
)

// maxPrivate is how long the text of a private key may be, in bytes. Those that Create makes have 2.3 KB.
const maxPrivate = 8 << 10

// ReadPrivate reads the private half of a signing key: the base64 of a PEM (RFC 7468), as Create gives it, or the PEM
// itself, with an RSA key as PKCS #1 (RFC 8017 appendix A.1.2) or PKCS #8 (RFC 5958). What is wrong with it is
// fault.Invalid, without a word of the text.
func ReadPrivate(text string) (*rsa.PrivateKey, error) {
	if text = strings.TrimSpace(text); len(text) > maxPrivate {
		return nil, notPrivate("it has more than %d bytes, which no signing key has", maxPrivate)
	}
	if !strings.HasPrefix(text, pemBegin) {
		plain, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || !strings.HasPrefix(string(plain), pemBegin) {
			return nil, notPrivate("it is neither a PEM nor the base64 of one")
		}
		text = string(plain)
	}
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, notPrivate("it is not a whole PEM: its end is missing, or characters are")
	case strings.TrimSpace(string(rest)) != "":
		return nil, notPrivate("there is something behind the PEM: give one private key alone")
	case block.Headers["Proc-Type"] != "", block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, notPrivate("it is encrypted: give it without a passphrase")
	case strings.Contains(block.Type, "PUBLIC KEY"), block.Type == "CERTIFICATE":
		return nil, notPrivate("it is the public half: give the private one")
	}
	return rsaKey(block)
}

const pemBegin = "-----BEGIN "

// rsaKey reads what is in a PEM.
func rsaKey(block *pem.Block) (*rsa.PrivateKey, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return k, nil
		}
	case "PRIVATE KEY":
		found, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		k, is := found.(*rsa.PrivateKey)
		if err == nil && is {
			return k, nil
		}
		if err == nil {
			return nil, notPrivate("it is a private key, but no RSA key")
		}
	default:
		return nil, notPrivate("it is a PEM of something other than a private RSA key")
	}
	return nil, notPrivate("the private key in the PEM is damaged")
}

func notPrivate(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
