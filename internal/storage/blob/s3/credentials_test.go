package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/fault"
)

// issuer stands for the service that gives out temporary credentials: a machine's metadata service, a container's
// agent, or STS. Each time it is asked it gives out others, called key1, key2 and so on.
type issuer struct {
	t      *testing.T
	expiry time.Duration // of what it gives out, from now

	mu    sync.Mutex
	given int
	token string // that it was asked with
}

func (i *issuer) next() (key, expires string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.given++
	return fmt.Sprintf("key%d", i.given), time.Now().Add(i.expiry).UTC().Format(time.RFC3339)
}

func (i *issuer) document(w http.ResponseWriter) {
	key, expires := i.next()
	_, _ = fmt.Fprintf(w,
		`{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":"s","Token":"session-%s","Expiration":%q}`, key, key, expires)
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		_, _ = w.Write([]byte("metadata-session"))
	case strings.HasPrefix(r.URL.Path, "/latest/meta-data/iam/security-credentials") &&
		r.Header.Get("X-Aws-Ec2-Metadata-Token") != "metadata-session":
		http.Error(w, "no token", http.StatusUnauthorized)
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
		_, _ = w.Write([]byte("video-role"))
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/video-role", r.URL.Path == "/container":
		i.document(w)
	case r.Method == http.MethodPost && r.FormValue("Action") == "AssumeRoleWithWebIdentity" &&
		r.FormValue("RoleArn") == "arn:aws:iam::1:role/video":
		i.mu.Lock()
		i.token = r.FormValue("WebIdentityToken")
		i.mu.Unlock()
		key, expires := i.next()
		_, _ = fmt.Fprintf(w,
			`<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
				`<SecretAccessKey>s</SecretAccessKey><SessionToken>session-%s</SessionToken><Expiration>%s</Expiration>`+
				`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, key, key,
			expires)
	default:
		http.NotFound(w, r)
	}
}

// signers is a bucket that keeps who signed the requests that it got.
type signers struct {
	mu  sync.Mutex
	all []string
}

func (s *signers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, after, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, scope, _ := strings.Cut(after, "/")
	s.mu.Lock()
	s.all = append(s.all, key+" "+r.Header.Get("X-Amz-Security-Token")+" "+strings.Split(scope+"//", "/")[1])
	s.mu.Unlock()
	w.Header().Set("Content-Length", "1")
}

// alone makes the environment one in which the SDK finds nothing.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
		"AWS_DEFAULT_REGION", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_ENDPOINT_URL",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "credentials"))
}

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCredentialsAreFound where AWS tools look for them, and are got again before they end.
//
//nolint:paralleltest // the environment is where the SDK looks
func TestCredentialsAreFound(t *testing.T) {
	const soon, late = -time.Second, time.Hour
	for name, tt := range map[string]struct {
		expiry time.Duration
		set    func(t *testing.T, issuer string)
		want   []string // signers of three requests
	}{
		"role of the machine": {late, func(t *testing.T, issuer string) {
			t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
			t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", issuer)
		}, []string{"key1 session-key1 us-east-1", "key1 session-key1 us-east-1", "key1 session-key1 us-east-1"}},
		"agent of the container": {late, func(t *testing.T, issuer string) {
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", issuer+"/container")
		}, []string{"key1 session-key1 us-east-1", "key1 session-key1 us-east-1", "key1 session-key1 us-east-1"}},
		"web identity": {late, func(t *testing.T, issuer string) {
			t.Setenv("AWS_REGION", "eu-west-3")
			t.Setenv("AWS_ENDPOINT_URL_STS", issuer)
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/video")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", write(t, "identity of a pod"))
		}, []string{"key1 session-key1 eu-west-3", "key1 session-key1 eu-west-3", "key1 session-key1 eu-west-3"}},
		"web identity that ends": {soon, func(t *testing.T, issuer string) {
			t.Setenv("AWS_REGION", "eu-west-3")
			t.Setenv("AWS_ENDPOINT_URL_STS", issuer)
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/video")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", write(t, "identity of a pod"))
		}, []string{"key1 session-key1 eu-west-3", "key2 session-key2 eu-west-3", "key3 session-key3 eu-west-3"}},
		"profile": {late, func(t *testing.T, _ string) {
			t.Setenv("AWS_PROFILE", "video")
			t.Setenv("AWS_CONFIG_FILE", write(t, "[profile video]\nregion = ap-south-1\n"))
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE",
				write(t, "[video]\naws_access_key_id = mine\naws_secret_access_key = s\n"))
		}, []string{"mine  ap-south-1", "mine  ap-south-1", "mine  ap-south-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			from := &issuer{t: t, expiry: tt.expiry}
			gives := httptest.NewServer(from)
			defer gives.Close()
			var got signers
			keeps := httptest.NewServer(&got)
			defer keeps.Close()
			tt.set(t, gives.URL)
			b, err := Open(t.Context(), Options{Bucket: "b", Endpoint: keeps.URL, PathStyle: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close() }()
			if from.given != 0 {
				t.Error("a start depends on the service that gives out credentials")
			}
			for range tt.want {
				if _, err := b.Stat(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Join(got.all, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("signed by %q, want %q", got.all, tt.want)
			}
			if strings.HasPrefix(name, "web identity") && from.token != "identity of a pod" {
				t.Errorf("STS was shown %q", from.token)
			}
		})
	}
}

// TestNoCredentials are a storage that can't be used now, with a sentence that names what is missing; the end of a
// request is its own error.
//
//nolint:paralleltest // the environment is where the SDK looks
func TestNoCredentials(t *testing.T) {
	alone(t)
	var got signers
	keeps := httptest.NewServer(&got)
	defer keeps.Close()
	b, err := Open(t.Context(), Options{Bucket: "b", Endpoint: keeps.URL, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	_, err = b.Stat(t.Context(), "k")
	if !errors.Is(err, ErrNoCredentials) || fault.KindOf(err) != fault.Unavailable || fault.Permanent(err) {
		t.Errorf("it says %v", err)
	}
	if len(got.all) > 0 {
		t.Errorf("%d requests are sent without credentials", len(got.all))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err = b.Stat(ended, "k"); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoCredentials) {
		t.Errorf("after the end of a request: %v", err)
	}
}

// TestNothingPastTheLog: where the metadata service gives out no token, the SDK itself would warn on stderr.
func TestNothingPastTheLog(t *testing.T) {
	alone(t)
	metadata := httptest.NewServer(http.NotFoundHandler())
	defer metadata.Close()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	path := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func(stderr *os.File) { os.Stderr = stderr; _ = file.Close() }(os.Stderr)
	os.Stderr = file
	keys, _, err := credentialsOf(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = keys.Retrieve(t.Context()); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("credentials: %v", err)
	}
	if written, err := os.ReadFile(path); err != nil || len(written) > 0 {
		t.Errorf("%v, stderr has %q", err, written)
	}
}
