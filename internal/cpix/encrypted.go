package cpix

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what rsa-oaep-mgf1p names, RFC 8017 appendix A.2.1; collisions do not matter there
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Recipient is whom keys are encrypted to: a key pair for one request, CPIX 2.3 section 8.1.
type Recipient struct {
	private     *rsa.PrivateKey
	certificate []byte // DER
}

// NewRecipient makes a key pair, RSA of 2048 bits, and a certificate of an hour for it, which takes about 0.2 s.
func NewRecipient(now time.Time) (*Recipient, error) {
	const bits = 2048
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("make key pair: %w", err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "CPIX recipient"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageKeyEncipherment,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &Recipient{private: private, certificate: certificate}, nil
}

// opener returns what reads the keys of a document: in clear without a recipient; with one, encrypted with the document
// key, which is encrypted to it. A provider that sends them in clear although it was asked to encrypt is refused.
func (r *Recipient) opener(delivery []responseDelivery) (func(secret) ([]byte, error), error) {
	if r == nil {
		return func(s secret) ([]byte, error) {
			value, err := decode(s.Plain)
			if err != nil || len(value) == 0 {
				return nil, errors.New("a key has no PlainValue in base64")
			}
			return value, nil
		}, nil
	}
	if len(delivery) != 1 {
		return nil, errors.New("the keys are not encrypted: there must be one DeliveryData")
	}
	key, err := r.unwrap(delivery[0].DocumentKey.Encrypted)
	if err != nil {
		return nil, err
	}
	macKey, err := r.unwrap(delivery[0].MACKey)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(key) != 32 {
		return nil, errors.New("the document key does not have 32 bytes")
	}
	return func(s secret) ([]byte, error) { return openValue(block, macKey, s) }, nil
}

// unwrap decrypts with RSA-OAEP, XML Encryption section 5.5.2 (rsa-oaep-mgf1p).
func (r *Recipient) unwrap(c cipheredText) ([]byte, error) {
	raw, err := decode(c.Value)
	if err != nil {
		return nil, errors.New("the document key is no base64")
	}
	key, err := rsa.DecryptOAEP(sha1.New(), nil, r.private, raw, nil) //nolint:gosec // see above
	if err != nil {
		return nil, errors.New("the document key is not encrypted to this request")
	}
	return key, nil
}

// openValue decrypts a key, AES-256-CBC with the IV in front (XML Encryption section 5.2.2), after its MAC,
// HMAC-SHA-512.
func openValue(block cipher.Block, macKey []byte, s secret) ([]byte, error) {
	raw, err := decode(s.Encrypted.Value)
	if err != nil || len(raw) < 2*aes.BlockSize || len(raw)%aes.BlockSize != 0 {
		return nil, errors.New("a key is not encrypted as the document says")
	}
	given, err := decode(s.MAC)
	mac := hmac.New(sha512.New, macKey)
	mac.Write(raw)
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		return nil, errors.New("the MAC (ValueMAC) of a key does not fit")
	}
	plain := make([]byte, len(raw)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, raw[:aes.BlockSize]).CryptBlocks(plain, raw[aes.BlockSize:])
	pad := int(plain[len(plain)-1])
	if pad < 1 || pad > aes.BlockSize || pad > len(plain) {
		return nil, errors.New("the padding of a key does not fit")
	}
	return plain[:len(plain)-pad], nil
}
