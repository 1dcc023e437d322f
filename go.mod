module millrace

go 1.26.0

// modernc's tests ask for this pprof version, which not every proxy has; without the exclude `go mod tidy` fails.
exclude github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50

require github.com/aws/aws-sdk-go-v2 v1.47.6

require github.com/aws/aws-sdk-go-v2/credentials v1.20.3

require github.com/aws/aws-sdk-go-v2/service/s3 v1.114.7

require github.com/danielgtaylor/huma/v2 v2.37.2

require github.com/jackc/pgx/v5 v5.12.0

require github.com/pressly/goose/v3 v3.29.0

require github.com/riverqueue/river v0.47.0

require github.com/riverqueue/river/riverdriver/riverpgxv5 v0.47.0

require github.com/riverqueue/river/riverdriver/riversqlite v0.47.0

require github.com/uptrace/bun v1.3.0

require github.com/uptrace/bun/dialect/pgdialect v1.3.0

require github.com/uptrace/bun/dialect/sqlitedialect v1.3.0

require modernc.org/sqlite v1.61.1

require github.com/bluenviron/mediacommon/v2 v2.9.3

require github.com/Eyevinn/mp4ff v0.53.0

require github.com/bluenviron/gortmplib v1.0.1

require github.com/datarhei/gosrt v0.11.1-0.20260812091715-a77b40bb4b76

require github.com/bluenviron/gohlslib/v2 v2.4.3

require golang.org/x/text v0.43.0

require golang.org/x/sync v0.24.0

require golang.org/x/net v0.61.0

require golang.org/x/sys v0.49.0

require gopkg.in/yaml.v3 v3.0.1

require (
	github.com/aws/smithy-go v1.28.8
	github.com/pion/ice/v4 v4.4.1
	github.com/pion/interceptor v0.1.47
	github.com/pion/logging v0.2.4
	github.com/pion/rtcp v1.2.17
	github.com/pion/rtp v1.10.5
	github.com/pion/sdp/v3 v3.0.19
	github.com/pion/transport/v4 v4.1.0
	github.com/pion/webrtc/v4 v4.2.18
	github.com/riverqueue/river/rivertype v0.47.0
	github.com/spf13/pflag v1.0.10
	go.uber.org/goleak v1.3.0
)

require (
	github.com/prometheus/client_golang v1.23.2
	golang.org/x/crypto v0.58.0
	golang.org/x/exp v0.0.0-20261011100332-faecfb24eb49
	golang.org/x/image v0.38.0
)

require github.com/tus/tusd/v2 v2.9.2

require github.com/golang-jwt/jwt/v5 v5.3.1

require github.com/ebitengine/purego v0.10.0

require github.com/coder/websocket v1.8.15

require github.com/pires/go-proxyproto v0.15.0

require (
	github.com/KimMachineGun/automemlimit v1.0.1
	github.com/yuin/goldmark v1.8.7
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.opentelemetry.io/proto/slim/otlp v1.11.0
)

require (
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
)

require (
	github.com/asticode/go-astikit v0.30.0 // indirect
	github.com/asticode/go-astits v1.16.0 // indirect
	github.com/benburkert/openpgp v0.0.0-20160410205803-c2471f86866c // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pion/datachannel v1.6.2 // indirect
	github.com/pion/dtls/v3 v3.1.5 // indirect
	github.com/pion/mdns/v2 v2.1.0 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/sctp v1.11.1 // indirect
	github.com/pion/srtp/v3 v3.0.12 // indirect
	github.com/pion/stun/v3 v3.1.6 // indirect
	github.com/pion/turn/v5 v5.0.12 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.66.1 // indirect
	github.com/prometheus/procfs v0.22.0
	github.com/wlynxg/anet v0.0.5 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/time v0.15.0
)

require (
	github.com/abema/go-mp4 v1.7.1 // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.26 // indirect
	github.com/aws/aws-sdk-go-v2/config v1.33.3
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.19.2 // indirect
	github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager v0.4.3
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/checksum v1.11.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/s3shared v1.20.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.9.0 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.37.0 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.42.0 // indirect
	github.com/aws/aws-sdk-go-v2/service/sts v1.49.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/riverqueue/river/riverdriver v0.47.0
	github.com/riverqueue/river/rivershared v0.47.0 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	github.com/tidwall/gjson v1.19.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/tmthrgd/go-hex v0.0.0-20190904060850-447a3041c3bc // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	google.golang.org/protobuf v1.36.12
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
