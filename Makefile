# The verbs of this project; .ci/run calls the same ones. "make help" lists them.
.DEFAULT_GOAL := help
.PHONY: bench bench-kafka build ci clean cross fuzz help lint race run test test-oracle

GO        ?= go
FUZZTIME  ?= 30s
ARGS      ?=
TESTFLAGS ?=
BENCH     ?= .
BENCHFLAGS ?=

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# No HTTP/2: the admin port does without it, and 350 KB are saved.
STRIPPED  := -trimpath -tags nethttpomithttp2 -ldflags '-s -w'
# Packages with tests that need a real Kafka.
ORACLE    = $(shell grep -rlE '^//go:build oracle' --include='*_test.go' . | xargs -n1 dirname | sort -u)

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort | expand -t 14

run: build ## start a broker: data in ./tidemark-data, clients on 127.0.0.1:9092; ARGS="--set key=value" adds to it
	bin/tidemark serve $(ARGS)

build: ## build bin/tidemark, static and stripped
	CGO_ENABLED=0 $(GO) build $(STRIPPED) -o bin/tidemark ./cmd/tidemark

test: ## run the tests that need nothing but Go
	$(GO) test $(TESTFLAGS) ./...

race: ## the same with the race detector, long tests shortened (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $(TESTFLAGS) ./...

test-oracle: ## run the tests against real Kafka: needs a JDK 17, Python 3 with venv, Node.js with npm, and Maven
	$(GO) test -tags oracle -count=1 -p 1 -timeout 30m $(TESTFLAGS) $(ORACLE)

lint: bin/golangci-lint ## go.mod is tidy, go vet, and golangci-lint in the version that tools/go.mod pins
	$(GO) mod tidy -diff
	$(GO) vet -tags oracle,browser ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	bin/golangci-lint run ./...
	cd test/clients/go && $(GO) mod tidy -diff && $(GO) vet ./... && ../../../bin/golangci-lint run ./...

bin/golangci-lint: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

cross: ## build for every platform
	@for p in $(PLATFORMS); do \
	  echo "bin/tidemark-$${p%/*}-$${p#*/}"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} \
	    $(GO) build $(STRIPPED) -o bin/tidemark-$${p%/*}-$${p#*/} ./cmd/tidemark || exit 1; \
	done

fuzz: ## run every fuzz target for FUZZTIME (30s), two at a time
	tools/fuzz $(FUZZTIME)

bench: ## run the benchmarks; BENCH=regexp selects
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-kafka: ## Kafka and Tidemark side by side, into doc/bench.md (75 min; BENCHFLAGS=-targets: 15 min, -h: all flags)
	$(GO) test -tags oracle -c -o bin/bench-kafka ./test/bench
	cd test/bench && $(CURDIR)/bin/bench-kafka -test.run '^$$' -test.bench 'SideBySide|Growth' -test.benchtime 1x \
	  -out $(CURDIR)/doc $(BENCHFLAGS)

ci: ## what CI runs
	.ci/run

clean: ## remove what was built
	rm -rf bin
