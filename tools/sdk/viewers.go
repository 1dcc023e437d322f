package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	mux "github.com/muxinc/mux-go/v6"
)

// restrictions makes a playback restriction, changes both of its blocks and deletes it.
func (r run) restrictions() error {
	rules := r.PlaybackRestrictionsApi
	rule, err := rules.CreatePlaybackRestriction(mux.CreatePlaybackRestrictionRequest{
		Referrer:  mux.ReferrerDomainRestriction{AllowedDomains: []string{"*.example.com"}},
		UserAgent: mux.UserAgentRestrictionRequest{AllowNoUserAgent: true},
	})
	if err != nil {
		return err
	}
	id := rule.Data.Id
	pages, err := rules.UpdateReferrerDomainRestriction(id, mux.UpdateReferrerDomainRestrictionRequest{
		AllowedDomains: []string{"*"}, AllowNoReferrer: true,
	})
	if err != nil {
		return err
	}
	programs, err := rules.UpdateUserAgentRestriction(id, mux.UpdateUserAgentRestrictionRequest{
		AllowNoUserAgent:       true,
		AllowHighRiskUserAgent: true,
	})
	if err != nil {
		return err
	}
	listed, err := rules.ListPlaybackRestrictions()
	if err != nil || !slices.ContainsFunc(listed.Data, func(p mux.PlaybackRestriction) bool { return p.Id == id }) {
		return fmt.Errorf("the playback restriction is not in the list: %w", err)
	}
	err = rules.DeletePlaybackRestriction(id)
	_, gone := rules.GetPlaybackRestriction(id)
	return errors.Join(
		err, refused[mux.NotFoundError]("a deleted playback restriction", gone),
		want("domains at first", fmt.Sprint(rule.Data.Referrer.AllowedDomains), "[*.example.com]"),
		want("domains", fmt.Sprint(pages.Data.Referrer.AllowedDomains), "[*]"),
		want("allow_no_referrer", pages.Data.Referrer.AllowNoReferrer, true),
		want("allow_high_risk_user_agent", programs.Data.UserAgent.AllowHighRiskUserAgent, true),
		want("domains afterwards", fmt.Sprint(programs.Data.Referrer.AllowedDomains), "[*]"),
	)
}

// keys is either of the two APIs of signing keys.
type keys struct {
	create func(...mux.APIOption) (mux.SigningKeyResponse, error)
	get    func(string, ...mux.APIOption) (mux.SigningKeyResponse, error)
	list   func(...mux.APIOption) (mux.ListSigningKeysResponse, error)
	remove func(string, ...mux.APIOption) error
}

func (r run) signingKeys() error {
	now, older := r.SigningKeysApi, r.URLSigningKeysApi
	return errors.Join(
		r.signing(keys{now.CreateSigningKey, now.GetSigningKey, now.ListSigningKeys, now.DeleteSigningKey}),
		r.signing(keys{
			older.CreateUrlSigningKey, older.GetUrlSigningKey, older.ListUrlSigningKeys, older.DeleteUrlSigningKey,
		}),
	)
}

// signing makes a key, has a token of it verified, and deletes it: then the token is refused.
func (r run) signing(api keys) error {
	made, err := api.create()
	if err != nil {
		return err
	}
	token, err := sign(made.Data, map[string]any{"sub": "pb1", "aud": "v", "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		return err
	}
	verify := func() error { return r.world("/test/verify?token=" + token) }
	taken := verify()
	got, err := api.get(made.Data.Id)
	if err != nil {
		return err
	}
	all, err := api.list()
	if err != nil {
		return err
	}
	err = api.remove(made.Data.Id)
	_, gone := api.get(made.Data.Id)
	return errors.Join(
		taken, err, want("the ID got", got.Data.Id, made.Data.Id), want("private_key got", got.Data.PrivateKey, ""),
		want("keys listed", len(all.Data), 1),
		refused[mux.NotFoundError]("a deleted key", gone),
		want("a token of a deleted key is taken", verify() == nil, false),
	)
}

// sign makes a token as the library's users do: it has no function for it.
func sign(k mux.SigningKey, claims map[string]any) (string, error) {
	text, err := base64.StdEncoding.DecodeString(k.PrivateKey)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errors.New("the private key is no PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.Id})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	plain := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(plain))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return plain + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
