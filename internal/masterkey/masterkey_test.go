package masterkey_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"millrace/internal/masterkey"
)

func TestParse(t *testing.T) {
	t.Parallel()
	k := masterkey.Generate()
	for _, text := range []string{k.Text(), k.Text() + "\n", " " + hex.EncodeToString(k[:]) + "\r\n"} {
		if got, err := masterkey.Parse([]byte(text)); err != nil || got != k {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "x", k.Text()[1:], k.Text() + k.Text(), hex.EncodeToString(k[:31]), strings.Repeat("z", 64),
	} {
		if _, err := masterkey.Parse([]byte(text)); err == nil || len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if shown := fmt.Sprintf("%v %s %+v", k, k, k); strings.Contains(shown, k.Text()) ||
		strings.Contains(shown, hex.EncodeToString(k[:])) {
		t.Errorf("a log shows the key: %s", shown)
	}
	if other := masterkey.Generate(); other.Fingerprint() == k.Fingerprint() || len(k.Fingerprint()) != 16 {
		t.Errorf("fingerprints %s and %s", k.Fingerprint(), other.Fingerprint())
	}
}

func TestVault(t *testing.T) {
	t.Parallel()
	k, v := masterkey.Generate(), masterkey.NewVault()
	again, err := k.Unwrap(k.Wrap(v))
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("0123456789abcdef")
	sealed := v.Seal(secret, "a/1")
	if got, err := again.Open(sealed, "a/1"); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%q, %v", got, err)
	}
	if bytes.Contains(sealed, secret) || bytes.Equal(sealed, v.Seal(secret, "a/1")) {
		t.Error("the same text twice, or in clear")
	}
	if again.Hash("x", "key") != v.Hash("x", "key") || v.Hash("x", "key") == v.Hash("x", "other") ||
		v.Hash("x", "key") == masterkey.NewVault().Hash("x", "key") {
		t.Error("hashes are those of a secret, a use and a data key")
	}
	for name, broken := range map[string][]byte{
		"empty": nil, "short": sealed[:10], "longer": append(bytes.Clone(sealed), 0),
		"flipped": flip(sealed, len(sealed)-1), "nonce": flip(sealed, 1), "version": flip(sealed, 0),
	} {
		if _, err := v.Open(broken, "a/1"); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
	if _, err := v.Open(sealed, "a/2"); err == nil {
		t.Error("opened for another place")
	}
	if _, err := masterkey.NewVault().Open(sealed, "a/1"); err == nil {
		t.Error("opened with another data key")
	}
	if _, err := masterkey.Generate().Unwrap(k.Wrap(v)); err == nil {
		t.Error("unwrapped with another master key")
	}
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

func BenchmarkOpen(b *testing.B) {
	v := masterkey.NewVault()
	sealed := v.Seal(make([]byte, 200), "live_streams/1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Open(sealed, "live_streams/1"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	v := masterkey.NewVault()
	b.ReportAllocs()
	for b.Loop() {
		_ = v.Hash("0b9b1f4e-5d0c-4b0e-8a30-9d2f2a0e9a11", "stream key")
	}
}
