# What can be done here, one command each. `make` alone lists them.

CARGO ?= cargo
# More arguments for `make run` and `make prosody`, as in: make run ARGS="--scale 0.2 --seed 7"
ARGS ?=
# Run directories for `make report`.
DIRS ?= $(patsubst %/run.json,%,$(wildcard runs/*/run.json))

.DEFAULT_GOAL := help
.PHONY: help run prosody test bench lint report clean needs cargo

help: ## Lists the commands
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

run: cargo ## Builds throng and runs the quickstart: a crowd in throng's own server, about a minute
	$(CARGO) run --release --locked --package throng -- run scenarios/quickstart.yaml $(ARGS)

prosody: cargo needs ## Runs the Prosody experiment (ARGS="--scale 0.2" for a small one)
	$(CARGO) run --release --locked --package throng -- run scenarios/prosody-cpu.yaml $(ARGS)

test: cargo needs ## Installs what the tests need, and runs all of them
	$(CARGO) test --workspace --locked --no-fail-fast

bench: cargo ## Measures throng itself, beside the machine's floor and its peers, about 25 minutes
	benches/run

lint: cargo ## Checks format, lints, documentation, and licenses of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked
	scripts/check-docs
	scripts/check-licenses

report: cargo ## Draws the reports of all runs anew (DIRS="runs/one runs/two" for some)
	$(CARGO) run --release --locked --package throng -- report $(DIRS)

clean: ## Removes what was built; runs stay
	$(CARGO) clean

needs:
	@scripts/install-needs

cargo:
	@command -v $(CARGO) >/dev/null || { \
	  echo "make: there is no cargo: install Rust, see https://rustup.rs" >&2; exit 1; }
