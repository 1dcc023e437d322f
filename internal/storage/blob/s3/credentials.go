package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// ErrNoCredentials is what the owner of the bucket has to mend: the options hold no credentials, and the SDK got none.
var ErrNoCredentials = errors.New("there are no credentials for the storage")

// credentialTime is how long one attempt to get credentials may take.
const credentialTime = 10 * time.Second

// credentialsOf are those of the options, or what the SDK finds; then region is what it finds too, maybe none. Nothing
// is asked of the network before the first request.
func credentialsOf(ctx context.Context, o Options) (keys aws.CredentialsProvider, region string, err error) {
	if o.AccessKeyID != "" {
		return credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken), "", nil
	}
	return findCredentials(ctx, o.Region)
}

// findCredentials leaves it to the SDK where credentials are: in the environment, in the files of the AWS tools
// (AWS_PROFILE), as the web identity of a Kubernetes service account, from a container's agent, or as the role of the
// machine. The SDK keeps them until shortly before they end.
func findCredentials(ctx context.Context, region string) (aws.CredentialsProvider, string, error) {
	client := awshttp.NewBuildableClient().WithTimeout(credentialTime).
		WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	cfg, err := config.LoadDefaultConfig(
		ctx, config.WithRegion(region), config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // else warnings go to stderr, past the service's log
	)
	if err != nil {
		return nil, "", fmt.Errorf("look for credentials of the storage: %w", err)
	}
	return found{cfg.Credentials}, cfg.Region, nil
}

// found are credentials whose errors say that there are none.
type found struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (f found) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := f.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		err = because{err, ErrNoCredentials}
	}
	return c, err
}
