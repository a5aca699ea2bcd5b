# `make` without a target lists all targets.
# Scripts in scripts/ install the programs that only tests and demos need into the user's cache.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mcp-sidecar
BIN   := $(or $(CARGO_TARGET_DIR),target)/debug/mcp-sidecar

# Agents may not decide for the user; without this, tests that an agent runs would be refused.
export MCP_SIDECAR_TEST_ROOT := $(shell echo $$PPID)

.PHONY: agents book coverage dist faults fuzz generate help journeys mutants run nvim soak vscode conformance packages release repeat test test-rust test-fronts test-nvim test-vscode test-vscode-oldest check check-vscode fmt bench servers
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, then run a demo on a copy of the example workspace
	cargo build
	@$(BIN) demo

nvim: ## build, then open a copy of examples/workspace in Neovim
	cargo build
	@scripts/nvim-demo $(BIN)

vscode: ## package the VS Code extension with the binary, optimized for size (takes a while)
	cargo build --profile dist
	@scripts/package-vscode $(or $(CARGO_TARGET_DIR),target)/dist/mcp-sidecar

book: ## build the documentation site in target/book, and check its links
	@scripts/book

dist: ## build the release archive for this machine (takes a while); on Linux, it runs with glibc 2.17 and newer
	@scripts/dist

packages: ## make all packages from the release archive, install each in an empty folder, and run it
	@scripts/test-packages

release: ## set the version everywhere and write the changelog's heading: make release VERSION=1.2.3
	@scripts/release $(or $(VERSION),$(error set the version: make release VERSION=1.2.3))

# Most tests wait for processes, so two groups of them run side by side. `cargo test` builds $(BIN); `cargo build` would build
# most crates again, without the features that only tests use.
BESIDE := $(MAKE) --no-print-directory --output-sync=target --jobs
test: ## run all checks and tests; must pass before a change is merged
	@echo "make: check, check-vscode and servers side by side; each prints its output when it ends"
	@$(BESIDE) check check-vscode servers
	cargo test --no-run
	@echo "make: test-rust and test-fronts side by side; each prints its output when it ends"
	@$(BESIDE) test-rust test-fronts

test-rust: ## run the Rust tests
	cargo test --no-fail-fast

test-fronts:
	@scripts/test-agents $(BIN) --quick
	@scripts/journeys $(BIN) --quick
	@scripts/test-nvim $(BIN)
	@scripts/test-vscode $(BIN)

test-nvim: ## test the Neovim plugin in a real Neovim
	cargo build
	@scripts/test-nvim $(BIN)

test-vscode: ## test the VS Code extension in a real VS Code
	cargo build
	@scripts/test-vscode $(BIN)

test-vscode-oldest: ## test the VS Code extension in the oldest supported VS Code
	cargo build
	@scripts/test-vscode $(BIN) --oldest

check: ## check formatting, lints and structure
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo test --test tidy --test generated
	@scripts/lint

check-vscode: ## check types, lints and size of the VS Code extension
	@scripts/check-vscode

generate: ## write the files that are generated from the types of the wire contract
	MCP_SIDECAR_GENERATE=1 cargo test --quiet --test generated

fmt: ## format the code
	cargo fmt

bench: ## measure calls, start, memory and language requests (release build), compared with other gateways; PEERS=no leaves them out, WRITE=write writes the tables to docs/performance.md
	peers=$(if $(filter no,$(PEERS)),BENCH_PEERS=,$$(scripts/get-peers)) && export "$$peers" && \
	cargo bench --bench overhead -- pinned $(WRITE) && cargo bench --bench overhead -- $(WRITE)
	cargo bench --bench overhead -- growth $(WRITE)
	cargo bench --bench language

faults: ## provoke every fault of tests/faults ten times; RUNS, SEED and CASES="STD- disk" change that (takes about half an hour)
	cargo test --test faults -- --full --runs $(or $(RUNS),10) $(if $(SEED),--seed $(SEED)) $(CASES)

soak: ## run ten servers, three editors and five agents at random for MINUTES (60) with a SEED, checked against a model
	cargo test --test soak -- --minutes $(or $(MINUTES),60) --seed $(or $(SEED),$(shell date +%s))

repeat: ## run each Rust test that starts processes RUNS (20) times on a busy machine; WORDS picks some
	@scripts/repeat $(or $(RUNS),20) $(WORDS)

fuzz: ## run each fuzz target for SECONDS (60) or those of TARGETS; needs nightly Rust and cargo-fuzz
	@scripts/fuzz $(or $(SECONDS),60) $(TARGETS)

coverage: servers ## print the line coverage of each module; needs `cov` (cargo install llvm_profparser). TESTS="--lib" selects some
	@scripts/coverage $(TESTS)

mutants: ## change src/policy, or src/engine/gate with PIECE=gate, in small ways, and print each change that no test notices
	@scripts/mutants $(or $(PIECE),policy) $(WORDS)

conformance: servers ## run the official conformance suite and third-party clients, and compare our results with the SDKs' clients
	cargo test --test foreign -- --include-ignored

agents: ## run real agents against `mcp-sidecar connect`, with a fake model; AGENTS="codex deny" picks agents and cases
	cargo build
	@scripts/test-agents $(BIN) $(AGENTS)

journeys: ## simulate seven new users, from an empty machine to the first call; NAMES="neovim claude" picks some
	cargo build
	@scripts/journeys $(BIN) $(NAMES)

servers: ## install the public MCP servers, clients and sandboxes that the tests use
ifeq ($(MCP_SIDECAR_SKIP_SERVERS),)
	@scripts/get-servers
	@scripts/get-clients
	@scripts/get-backends
	@scripts/get-bubblewrap >/dev/null
	@scripts/get-sshd >/dev/null
	@scripts/get-podman >/dev/null
else
	@echo "skipping the tests that need public MCP servers (MCP_SIDECAR_SKIP_SERVERS is set)"
endif
