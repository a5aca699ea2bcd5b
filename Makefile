# Everything is one of these words. `make` alone tells them.
# Programs that only tests and demos need go to the user's cache, see scripts/.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mcp-sidecar
BIN   := $(or $(CARGO_TARGET_DIR),target)/debug/mcp-sidecar

.PHONY: help run nvim vscode conformance test test-nvim test-vscode test-vscode-oldest check check-vscode fmt bench servers
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, then show it at work on a copy of the example workspace
	cargo build
	@$(BIN) demo

nvim: ## build, then open a copy of examples/workspace in Neovim
	cargo build
	@scripts/nvim-demo $(BIN)

vscode: ## pack the VS Code extension, the sidecar inside, built to be small (takes a while)
	cargo build --profile dist
	@scripts/package-vscode $(or $(CARGO_TARGET_DIR),target)/dist/mcp-sidecar

test: check check-vscode servers ## everything that must hold before a change lands
	cargo test --no-fail-fast
	@$(MAKE) --no-print-directory test-nvim
	@$(MAKE) --no-print-directory test-vscode

test-nvim: ## the Neovim plugin, in a real Neovim against the built binary
	cargo build
	@scripts/test-nvim $(BIN)

test-vscode: ## the VS Code extension, in a real VS Code against the built binary
	cargo build
	@scripts/test-vscode $(BIN)

test-vscode-oldest: ## the same in the oldest VS Code that is supported
	cargo build
	@scripts/test-vscode $(BIN) --oldest

check: ## formatting, lints and structure
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo test --test tidy
	@scripts/lint

check-vscode: ## types, lints and size of the VS Code extension
	@scripts/check-vscode

fmt: ## format the code
	cargo fmt

bench: ## what the sidecar adds to a call, and how fast language requests are (a release build)
	cargo bench --bench overhead --bench language

conformance: servers ## the official conformance suite, and clients that others wrote
	cargo test --test foreign

servers: ## install the public MCP servers and clients that tests run against
ifeq ($(MCP_SIDECAR_SKIP_SERVERS),)
	@scripts/get-servers
	@scripts/get-clients
else
	@echo "leaving out the tests that need public MCP servers (MCP_SIDECAR_SKIP_SERVERS is set)"
endif
