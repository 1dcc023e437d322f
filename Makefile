# One command for each thing a person or CI does here. `make help` lists them.
# Everything a target needs is installed or built by the target itself; nothing is left over from before.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

GO ?= go
FUZZTIME ?= 2m
NETFUZZTIME ?= 20s
BENCH ?= .
BENCHTIME ?= 200ms
PKG ?= ./...
KILLS ?= 300
# What bin/millrace may have in bytes: 45 MiB. What a library brings along is easily overlooked (decision 31).
MOST_BYTES ?= 47185920

# Tools are built from the Go module proxy, pinned with checksums in tools/*/go.mod, and kept by version.
GOVERSION := $(shell $(GO) env GOVERSION)
LINT_VERSION := $(shell awk '$$1 == "github.com/golangci/golangci-lint/v2" {print $$2}' tools/lint/go.mod)
S3_VERSION := $(shell awk '$$1 == "github.com/versity/versitygw" {print $$2}' tools/s3/go.mod)
LINT := bin/tools/golangci-lint-$(LINT_VERSION)-$(GOVERSION)
S3 := bin/tools/versitygw-$(S3_VERSION)-$(GOVERSION)
MEDIAMTX_VERSION := $(shell awk '$$1 == "require" && $$2 == "github.com/bluenviron/mediamtx" {print $$3}' tools/peer/go.mod)
MEDIAMTX := bin/tools/mediamtx-$(MEDIAMTX_VERSION)-$(GOVERSION)

# How tests are run with everything that they need; what that is, ready prepares.
TESTRUN = PATH="$$PATH:$$(dirname "$$(test/bench/peers/nginx.sh bin/tools/nginx)")" MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" \
	bin/testrun -services -require -versitygw "$(CURDIR)/$(S3)"

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the whole service with a live encoder, from nothing (Ctrl-C ends it)
	@scripts/install-packages.sh ffmpeg speech
	@$(MAKE) --no-print-directory build
	@exec bin/millrace demo $(ARGS)

.PHONY: test
test: step.modules step.build step.size step.lint step.archtest ready ## run every test: units, both storage pairs, end to end, in a browser
	@$(TESTRUN) -all -again 3

.PHONY: race
race: ready ## run every unit test that has goroutines or locks with the race detector
	@$(TESTRUN) -units -race

.PHONY: test-long
test-long: ready ## everything that make test and make race run, then some fuzzing
	@$(TESTRUN) -all -race -fuzz $(NETFUZZTIME)

# What a run needs, step by step: step.X makes X and says how long it took, or that it failed.
.PHONY: ready
ready: step.modules step.build step.size step.testrun step.s3-server step.packages step.node-packages step.nginx step.machine

step.%:
	@scripts/step.sh $* $(MAKE) --no-print-directory $*

.PHONY: modules size testrun s3-server packages node-packages nginx machine archtest
modules:
	@for dir in . tools/sdk tools/lint tools/s3; do scripts/retry.sh $(GO) -C $$dir mod download; done
size:
	@size="$$(stat -c %s bin/millrace)"; if [ "$$size" -gt $(MOST_BYTES) ]; then \
		echo "bin/millrace has $$size bytes, more than $(MOST_BYTES): go version -m shows what was linked in"; exit 1; fi
testrun: bin/testrun
s3-server: $(S3)
packages:
	@scripts/install-packages.sh ffmpeg speech postgresql chromium node gstreamer pebble srt
node-packages:
	@scripts/install-node-packages.sh
nginx:
	@test/bench/peers/nginx.sh bin/tools/nginx >/dev/null
machine:
	@scripts/machine.sh
archtest:
	@$(GO) test -trimpath ./internal/archtest

.PHONY: check
check: bin/testrun $(LINT) ## quick checks before a commit: format, lint (go vet is part of it), layers, unit tests with -race
	@out="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; if [ -n "$$out" ]; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	@$(LINT) run
	@bin/testrun -race -short -units

.PHONY: bench
bench: build $(MEDIAMTX) ## measure everything beside MediaMTX and nginx (MEASURE=density,…), then the benchmarks (BENCH=regexp BENCHTIME=200ms PKG=./…)
	@scripts/install-packages.sh ffmpeg
	@mkdir -p tmp/bench
	@$(GO) build -o bin/bench ./test/bench
	@nginx="$$(test/bench/peers/nginx.sh bin/tools/nginx)" && \
		bin/bench $(if $(MEASURE),-run $(MEASURE)) -dir tmp/bench -millrace bin/millrace -mediamtx $(MEDIAMTX) -nginx "$$nginx" -json tmp/bench/results.json
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(PKG) | grep -v -e 'no test files' -e '^PASS' -e '^ok ' -e '^goos' -e '^goarch' -e '^cpu'

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (2m) each (PKG=./...)
	@FUZZTIME=$(FUZZTIME) GO="$(GO)" scripts/fuzz.sh $(PKG)

.PHONY: storm
storm: storm-live storm-events ## storm-live, then storm-events

.PHONY: storm-live
storm-live: build ## kill a server KILLS (300) times while two live streams come in and a viewer remembers every byte (MILLRACE_TEST_SEED= repeats a run)
	@scripts/install-packages.sh ffmpeg
	@MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" MILLRACE_TEST_KILLS=$(KILLS) $(GO) test -count=1 -timeout 90m -v -run '^TestStorm$$' ./test/e2e

.PHONY: storm-events
storm-events: build bin/testrun $(S3) ## kill a process, and then the whole service, KILLS (300) times between any two steps of change, event and delivery, on both databases
	@scripts/install-packages.sh postgresql
	@MILLRACE_TEST_KILLS=$(KILLS) bin/testrun -services -require -versitygw "$(CURDIR)/$(S3)" -timeout 60m -run '^TestKills$$' ./internal/delivery
	@MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" MILLRACE_TEST_KILLS=$(KILLS) \
		bin/testrun -services -require -versitygw "$(CURDIR)/$(S3)" -timeout 60m -run '^TestEventsOverKills$$' ./test/e2e

.PHONY: golden
golden: ## write the golden files again; look at the diff before you commit it
	@GO="$(GO)" scripts/golden.sh

.PHONY: build
build: ## build bin/millrace, and bin/millrace-speech which it starts to recognise speech
	@mkdir -p bin
	@$(GO) build -trimpath -ldflags '-s -w' -o bin/millrace ./cmd/millrace
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/millrace-speech ./cmd/millrace-speech

.PHONY: fmt
fmt: $(LINT) ## format the code
	@$(LINT) fmt

.PHONY: lint
lint: $(LINT) ## run golangci-lint alone
	@$(LINT) run

.PHONY: clean
clean: ## remove what was built, tools too
	@rm -rf bin tmp

.PHONY: bin/testrun
bin/testrun:
	@mkdir -p bin
	@$(GO) build -o $@ ./test/testrun

$(LINT): tools/lint/go.mod tools/lint/go.sum
	@echo "building golangci-lint $(LINT_VERSION) (some minutes, once)"
	@mkdir -p bin/tools
	@$(GO) -C tools/lint build -trimpath -ldflags '-s -w' -o "$(CURDIR)/$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(S3): tools/s3/go.mod tools/s3/go.sum
	@echo "building versitygw $(S3_VERSION), the S3 server of the tests (about two minutes, once)"
	@mkdir -p bin/tools
	@$(GO) -C tools/s3 build -trimpath -ldflags '-s -w' -o "$(CURDIR)/$@" github.com/versity/versitygw/cmd/versitygw
	@touch $@

$(MEDIAMTX): tools/peer/go.mod tools/peer/go.sum test/bench/peers/mediamtx.sh
	@echo "building MediaMTX $(MEDIAMTX_VERSION), the peer of the benchmarks (some minutes, once)"
	@mkdir -p bin/tools
	@GO="$(GO)" test/bench/peers/mediamtx.sh "$(CURDIR)/$@"
	@touch $@
