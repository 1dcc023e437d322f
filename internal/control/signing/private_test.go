package signing_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"millrace/internal/control/signing"
	"millrace/internal/fault"
)

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestReadPrivate(t *testing.T) {
	t.Parallel()
	_, given, err := signing.New(signing.Options{Store: newMemory()}).Create(t.Context(), "env", noon)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := base64.StdEncoding.DecodeString(given)
	if err != nil {
		t.Fatal(err)
	}
	one := string(plain)
	block, _ := pem.Decode(plain)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"as it is given": given, "with space around": " \n" + given + "\r\n", "the PEM": one,
		"from a form": strings.ReplaceAll(one, "\n", "\r\n"), "in lines": given[:76] + "\r\n" + given[76:],
		"PKCS #8": asPEM("PRIVATE KEY", pkcs8), "no line feed at the end": strings.TrimSpace(one),
	} {
		if got, failed := signing.ReadPrivate(text); failed != nil || !got.Equal(key) {
			t.Errorf("%s: %v", name, failed)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := strings.Replace(one, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1)
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":       {"", "neither a PEM nor the base64 of one"},
		"prose":         {"the private half", "neither a PEM"},
		"base64 of it":  {base64.StdEncoding.EncodeToString([]byte("no PEM")), "neither a PEM"},
		"cut":           {given[:len(given)-400], "not a whole PEM"},
		"cut PEM":       {one[:len(one)-40], "not a whole PEM"},
		"twice":         {one + one, "something behind the PEM"},
		"public":        {asPEM("PUBLIC KEY", block.Bytes), "the public half"},
		"certificate":   {asPEM("CERTIFICATE", block.Bytes), "the public half"},
		"elliptic":      {asPEM("PRIVATE KEY", ec), "no RSA key"},
		"of a host":     {asPEM("OPENSSH PRIVATE KEY", block.Bytes), "other than a private RSA key"},
		"damaged":       {asPEM("RSA PRIVATE KEY", block.Bytes[:200]), "damaged"},
		"damaged PKCS8": {asPEM("PRIVATE KEY", pkcs8[:200]), "damaged"},
		"wrong prime":   {asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(wrong(key))), "damaged"},
		"encrypted":     {encrypted, "encrypted"},
		"huge":          {strings.Repeat("A", 8193), "more than 8192 bytes"},
	} {
		got, refused := signing.ReadPrivate(tt.text)
		if got != nil || !fault.Is(refused, fault.Invalid) || !strings.Contains(refused.Error(), tt.want) {
			t.Errorf("%s: %v, %v", name, got != nil, refused)
		}
	}
}

// wrong is a key whose parts do not belong together.
func wrong(k *rsa.PrivateKey) *rsa.PrivateKey {
	return &rsa.PrivateKey{
		PublicKey: k.PublicKey, D: k.D, Primes: k.Primes,
		Precomputed: rsa.PrecomputedValues{Dp: k.Precomputed.Dq, Dq: k.Precomputed.Dp, Qinv: k.Precomputed.Qinv},
	}
}

func FuzzReadPrivate(f *testing.F) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	one := asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	f.Add(one)
	f.Add(base64.StdEncoding.EncodeToString([]byte(one)))
	f.Add(asPEM("PRIVATE KEY", nil))
	f.Fuzz(func(t *testing.T, text string) {
		k, err := signing.ReadPrivate(text)
		if (k == nil) != (err != nil) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v, %v", k != nil, err)
		}
		if err != nil && len(text) > 40 && strings.Contains(err.Error(), text[:40]) {
			t.Errorf("the error shows what it was given: %v", err)
		}
	})
}
