module millrace/tools/sdk

go 1.26.0

require github.com/muxinc/mux-go/v6 v6.0.0

require github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
