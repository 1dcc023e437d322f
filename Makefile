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
SOURCE ?=
KILLS ?= 300
# What bin/millrace may have in bytes, 62.25 MiB. What a library brings along is easily overlooked (decisions 31, 60 and 111).
MOST_BYTES ?= 65273856

# Tools are kept in the user's cache folder, for all clones: this prints the path of one, and builds it first if need be.
export GO
TOOL := scripts/tool.sh

# Without -trimpath the linter's cache would not know a package that it has seen in another clone.
LINT = GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" "$$($(TOOL) golangci-lint)"

# How tests are run with everything that they need; what that is, ready prepares.
SERVICES = -services -require -versitygw "$$($(TOOL) versitygw)"
TESTRUN = PATH="$$PATH:$$(dirname "$$($(TOOL) nginx)"):$$(dirname "$$($(TOOL) prometheus)"):$$(dirname "$$($(TOOL) caddy)")" \
	MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" bin/testrun $(SERVICES)

# Not $(MAKE), whose lines make -n runs: what was only printed would be taken for green.
QUIET_MAKE = $(MAKE) --no-print-directory

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the whole service with a live encoder, from nothing (Ctrl-C ends it)
	@scripts/install-packages.sh ffmpeg speech
	@$(MAKE) --no-print-directory build
	@exec bin/millrace demo $(ARGS)

.PHONY: test
test: step.modules step.build step.size step.linter step.lint step.archtest ready ## run every test: units, both storage pairs, end to end, in a browser
	@$(TESTRUN) -all -again 3

.PHONY: race
race: ## run every unit test that has goroutines or locks with the race detector, unless these files have passed (FORCE=1)
	@scripts/green.sh race $(QUIET_MAKE) raced

.PHONY: raced
raced: ready
	@$(TESTRUN) -units -race

.PHONY: test-long
test-long: ready ## everything that make test and make race run, end to end on all pairs of storage, then some fuzzing
	@scripts/install-packages.sh chromium
	@MILLRACE_TEST_PAIRS=all MILLRACE_TEST_BROWSER=chromium $(TESTRUN) -all -race -fuzz $(NETFUZZTIME)

# What a run needs, step by step: step.X makes X and says how long it took, or that it failed.
.PHONY: ready
ready: step.modules step.build step.size step.testrun step.s3-server step.packages step.node-packages step.nginx step.prometheus step.caddy step.image-root step.machine

step.%:
	@scripts/step.sh $* $(MAKE) --no-print-directory $*

.PHONY: modules linter size testrun s3-server packages node-packages nginx prometheus caddy image-root machine archtest
modules:
	@for dir in . tools/sdk tools/release tools/image tools/deploy; do scripts/retry.sh $(GO) -C $$dir mod download; done
size:
	@size="$$(stat -c %s bin/millrace)"; if [ "$$size" -gt $(MOST_BYTES) ]; then \
		echo "bin/millrace has $$size bytes, more than $(MOST_BYTES): go version -m shows what was linked in"; exit 1; fi
testrun: bin/testrun
s3-server:
	@$(TOOL) versitygw >/dev/null
	@$(TOOL) h2spec >/dev/null
linter:
	@$(TOOL) golangci-lint >/dev/null
packages:
	@scripts/install-packages.sh ffmpeg speech postgresql chromium-headless-shell node gstreamer pebble srt haproxy varnish pgbouncer systemd rpm crun
node-packages:
	@scripts/install-node-packages.sh
nginx:
	@$(TOOL) nginx >/dev/null
prometheus:
	@$(TOOL) prometheus >/dev/null
caddy:
	@$(TOOL) caddy >/dev/null
image-root:
	@$(TOOL) image-root >/dev/null
machine:
	@scripts/machine.sh
archtest:
	@$(GO) test -trimpath ./internal/archtest

.PHONY: check
check: bin/testrun ## quick checks before a commit: format, lint (go vet is part of it), layers, unit tests with -race
	@out="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; if [ -n "$$out" ]; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	@$(LINT) run
	@bin/testrun -race -short -units

.PHONY: bench
bench: build ## measure everything beside MediaMTX and nginx (MEASURE=density,…), then the benchmarks (BENCH=regexp BENCHTIME=200ms PKG=./…)
	@scripts/install-packages.sh ffmpeg
	@mkdir -p tmp/bench
	@$(GO) build -o bin/bench ./test/bench
	@nginx="$$($(TOOL) nginx)" && mediamtx="$$($(TOOL) mediamtx)" && \
		bin/bench $(if $(MEASURE),-run $(MEASURE)) -dir tmp/bench -millrace bin/millrace -mediamtx "$$mediamtx" -nginx "$$nginx" \
		-json tmp/bench/results.json
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(PKG) | grep -v -e 'no test files' -e '^PASS' -e '^ok ' -e '^goos' -e '^goarch' -e '^cpu'

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (2m) each (PKG=./...)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh $(PKG)

.PHONY: storm
storm: storm-live storm-events storm-uploads ## storm-live, then storm-events, then storm-uploads

.PHONY: storm-live
storm-live: build ## kill a server KILLS (300) times while two live streams come in and a viewer remembers every byte (MILLRACE_TEST_SEED= repeats a run)
	@scripts/install-packages.sh ffmpeg
	@MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" MILLRACE_TEST_KILLS=$(KILLS) $(GO) test -count=1 -timeout 90m -v -run '^TestStorm(OfRungs)?$$' ./test/e2e

.PHONY: storm-events
storm-events: build bin/testrun ## kill a process, and then the whole service, KILLS (300) times between any two steps of change, event and delivery, on both databases
	@scripts/install-packages.sh postgresql
	@MILLRACE_TEST_KILLS=$(KILLS) bin/testrun $(SERVICES) -timeout 60m -run '^TestKills$$' ./internal/delivery
	@MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" MILLRACE_TEST_KILLS=$(KILLS) \
		bin/testrun $(SERVICES) -timeout 60m -run '^TestEventsOverKills$$' ./test/e2e

.PHONY: storm-uploads
storm-uploads: build bin/testrun ## kill a server KILLS (300) times at random bytes of uploads, on each pair of storage (MILLRACE_TEST_SEED= repeats a run)
	@scripts/install-packages.sh ffmpeg postgresql
	@$(TOOL) versitygw >/dev/null
	@MILLRACE_TEST_BINARY="$(CURDIR)/bin/millrace" MILLRACE_TEST_KILLS=$(KILLS) \
		bin/testrun $(SERVICES) -timeout 90m -run '^TestUploadSurvivesKills$$' ./test/e2e

.PHONY: golden
golden: ## write the golden files again; look at the diff before you commit it
	@scripts/golden.sh

.PHONY: pictures
pictures: ready ## take the pictures of docs/pictures again, in the tour of the dashboard; look at them before you commit them
	@MILLRACE_TEST_PICTURES="$(CURDIR)/docs/pictures" $(TESTRUN) -run '^TestDashboardTour$$' ./test/browser

.PHONY: build
build: ## build bin/millrace, and bin/millrace-speech which it starts to recognise speech
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/millrace ./cmd/millrace
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/millrace-speech ./cmd/millrace-speech

.PHONY: docs
docs: ## build dist/docs, the documentation as a static site (SOURCE=URL of the sources, for links to files outside docs/)
	@rm -rf dist/docs
	@$(GO) run ./docs/site -source "$(SOURCE)" docs dist/docs
	@echo "dist/docs/index.html"

.PHONY: release
release: modules ## build dist/: archives, packages, SBOMs and checksums for amd64 and arm64 (docs/install.md)
	@$(GO) -C tools/release run . -root "$(CURDIR)" -out "$(CURDIR)/dist"

.PHONY: image
image: release ## build dist/millrace-*.oci.tar too, the container image, without Docker (IMAGEARCH="amd64 arm64"; docs/docker.md)
	@scripts/image.sh "$(CURDIR)/dist" $(IMAGEARCH)

.PHONY: fmt
fmt: ## format the code
	@$(LINT) fmt

.PHONY: lint
lint: ## run golangci-lint alone
	@$(LINT) run

.PHONY: clean
clean: ## remove what was built here; tools and media, which all clones share, stay in the user's cache folder
	@for dir in bin dist tmp; do if [ -e $$dir ]; then du -sh $$dir | sed 's/^/removing /'; rm -rf $$dir; fi; done
	@cache="$${XDG_CACHE_HOME:-$$HOME/.cache}"; for dir in "$$cache"/millrace-test-*; do \
		if [ -d "$$dir" ]; then du -sh "$$dir" | sed 's/^/kept for all clones: /'; fi; done

.PHONY: bin/testrun
bin/testrun:
	@mkdir -p bin
	@$(GO) build -o $@ ./test/testrun
