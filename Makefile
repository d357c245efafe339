# Every developer command. `make` alone lists them; CI runs these and nothing else.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= $(shell command -v cargo || echo $(HOME)/.cargo/bin/cargo)
export PATH := $(dir $(CARGO)):$(PATH)
# Many processes start below: each would compile every module where byte code is not kept.
unexport PYTHONDONTWRITEBYTECODE
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock
# The virtual engine's guest program, where there is User-Mode Linux, and the live engine's program, where there is Linux: static.
GUEST := python/tcpscape/engines/guest/init
LIVE := python/tcpscape/engines/host/live
# What `tcpscape cca show` reads where there is no checkout: copies for the wheel.
PAGES := python/tcpscape/data/pages
# What the wheel puts below its environment's prefix: manual pages, completions, licences of linked crates.
SHARE := wheel.data
PROGRAMS := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),$(GUEST)) $(if $(filter Linux,$(shell uname -s)),$(LIVE))

.PHONY: help setup ready fast page-where-possible web wheel wheel-test demo kernel test test-rust test-python test-logic test-web test-all check check-rust bench fuzz fuzz-python refresh site clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# The explorer's page, which Node builds from web/; without Node the rest of tcpscape is complete.
PAGE := python/tcpscape/web/static/index.html
PAGE_SOURCES := $(shell find web -path web/node_modules -prune -o -type f -print 2>/dev/null)
NODE_20 := $(shell command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); if (+a > 20 || (+a == 20 && +b >= 19)) console.log("yes")' 2>/dev/null)

# Packages are installed by uv where it is there, else by pip; byte code is made when a module is first imported.
UV := $(shell command -v uv)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile)

# Behind the engine, what needs it: the packages for tests, the programs and the page are made side by side.
setup: ## the virtual environment with tcpscape in it; quick when nothing changed
	@$(MAKE) --no-print-directory -j 3 ready
ready: $(VENV)/.built $(VENV)/.tools $(PROGRAMS) page-where-possible

# What running the model needs: the virtual environment, the libraries and maturin.
$(VENV)/.run: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "python3 is missing: apt-get install python3 python3-venv"; exit 1; }
	@test -x "$(CARGO)" || { echo "cargo is missing: apt-get install cargo, or https://rustup.rs"; exit 1; }
	@command -v cc >/dev/null || { echo "a C linker is missing: apt-get install gcc"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "venv failed: apt-get install python3-venv"; exit 1; }
	@echo "setup: installing the Python packages"
	@$(BIN)/python scripts/requirements.py requires > $(VENV)/run.txt
	@$(INSTALL) -r $(VENV)/run.txt
	@touch $@

# What tests, checks and benchmarks need besides.
$(VENV)/.tools: $(VENV)/.run | $(VENV)/.built
	@echo "setup: installing the packages for tests and checks"
	@$(BIN)/python scripts/requirements.py dev > $(VENV)/requirements.txt
	@$(INSTALL) -r $(VENV)/requirements.txt
	@touch $@

$(VENV)/.built: $(VENV)/.run $(RUST_SOURCES)
	@echo "setup: building the engine (Rust, release)"
	@rm -rf $(PAGES) && mkdir -p $(PAGES) && cp -r docs/models/. $(PAGES)
	@$(BIN)/python scripts/wheel_data.py $(SHARE)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@touch $@

ifneq ($(strip $(PROGRAMS)),)
WITH_GUEST := $(filter $(GUEST),$(PROGRAMS))
# static,PACKAGE: a program that needs no library of the machine or the kernel that it runs in. The flag is the last compilation's alone, so that all
# before it are shared with the engine. What it links is optimised already; to do so once more across all of it takes twice as long, and these programs wait
# for the kernel.
static = $(CARGO) rustc --release --locked --quiet -p $(1) --bin $(1) -- -C target-feature=+crt-static -C strip=symbols -C opt-level=1 \
	|| { echo "$(1) does not build; if the linker misses libc.a: apt-get install libc6-dev"; exit 1; }

# One recipe, which runs once, makes all of them; after the engine, since two builds at a time would wait for each other.
$(PROGRAMS) &: $(RUST_SOURCES) | $(VENV)/.built
	@echo "setup: building the programs of the virtual and the live engine (Rust, release, static)"
	@$(call static,tcpscape-live)
	@install -m 755 target/release/tcpscape-live $(LIVE)
	@$(if $(WITH_GUEST),$(call static,tcpscape-guest))
	@$(if $(WITH_GUEST),install -m 755 target/release/tcpscape-guest $(GUEST))
	@$(if $(WITH_GUEST),$(CARGO) rustc --release --locked --quiet -p tcpscape-seed --lib -- -C strip=symbols)
	@$(if $(WITH_GUEST),install -m 644 target/release/libtcpscape_seed.so $(dir $(GUEST))seed.so)
endif

# What merges the profile of a program's run for the compiler, where it is there. A build with a profile has a directory of its own, so that the next one
# without it need not begin anew.
PROFDATA = $(wildcard $(shell $(dir $(CARGO))rustc --print sysroot 2>/dev/null)/lib/rustlib/*/bin/llvm-profdata)
PROFILED := --pgo --target-dir target/profiled

fast: setup ## the engine built again with a profile of its own work: 8 to 22 % less CPU time a packet (4 minutes)
	@test -n "$(PROFDATA)" || { echo "llvm-profdata is missing: rustup component add llvm-tools"; exit 1; }
	@echo "setup: building the engine, running it for its profile, and building it again"
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet $(PROFILED) >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }

# Neither a machine without Node nor one without a network is kept from the rest.
page-where-possible: | $(VENV)/.built
	@test -z "$(NODE_20)" || $(MAKE) --no-print-directory --silent $(PAGE) || echo "setup: the explorer's page is not built, for the reason above; the rest is complete"

web: $(PAGE) ## the explorer's page, from web/ (needs Node 20.19 or newer)

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@test -n "$(NODE_20)" || { echo "the explorer's page needs Node 20.19 or newer, and npm: apt-get install nodejs npm, or https://nodejs.org"; exit 1; }
	@cd web && npm ci --no-fund --no-audit --loglevel error --fetch-retries 1 >/dev/null

$(PAGE): web/node_modules/.package-lock.json $(PAGE_SOURCES)
	@echo "setup: building the explorer's page"
	@cd web && npm run --silent build -- --logLevel warn
	@touch $@

wheel: setup ## dist/tcpscape-*.whl for Python 3.10 and newer, complete: pages, programs of the engines, manual pages, completions
	@rm -rf $(PAGES) dist && mkdir -p $(PAGES) && cp -r docs/models/. $(PAGES)
	@$(BIN)/python scripts/wheel_data.py $(SHARE)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --locked --quiet --out dist $(if $(PROFDATA),$(PROFILED))
	@ls -sh dist/*.whl

wheel-test: wheel ## installs the wheel into an empty environment, with neither checkout nor compilers in sight, and uses it
	$(BIN)/python scripts/wheel_test.py dist/*.whl

demo: $(VENV)/.built ## two answers with their pages, in 40 lines: advise for Starlink's baseline, and where the jitter cliff is
	@echo '$$ tcpscape advise --rtt 26ms --jitter 7ms --loss 0.125% --rcvbuf 256KiB --app 10MiB/s --read 16KiB/1ms --kernel 6.12,rmem_max=4MiB --report'
	@$(BIN)/tcpscape advise --rtt 26ms --jitter 7ms --loss 0.125% --rcvbuf 256KiB --app 10MiB/s --read 16KiB/1ms --kernel 6.12,rmem_max=4MiB --out out/demo/advise --report
	@echo
	@echo '$$ tcpscape study run jitter-cliff --part cliff --part edges --seeds 12 --quiet'
	@$(BIN)/tcpscape study run jitter-cliff --part cliff --part edges --seeds 12 --quiet --out out/demo
	@echo
	@echo 'Two answers (→), two pages: open out/demo/advise/report.html out/demo/jitter-cliff/report.html'

test: test-rust test-python test-logic ## unit, contract, golden and CLI tests (9 minutes on two cores the first time)

# Without the examples, which `make check` compiles.
test-rust:
	$(CARGO) test --workspace --exclude tcpscape-py --quiet --lib --bins --tests
	$(CARGO) test --workspace --exclude tcpscape-py --quiet --doc

# One process more than cores of a small machine: many tests wait for a command that they started.
test-python: setup
	$(BIN)/python -m pytest -n 3 --dist loadfile -rfEs --durations=30 --durations-min=1

test-logic: setup
	@if [ -x web/node_modules/.bin/vitest ]; then cd web && node_modules/.bin/vitest run; \
	else echo "skipped: tests of the page's logic: web/node_modules is not there (Node 20.19 or newer, npm, network)"; fi

test-web: setup ## the explorer's page in Debian's Chromium (2 minutes); prints why anything was skipped
	$(BIN)/python -m pytest -m 'web and not slow' -rfEs -n 2 --dist loadfile tests/browser

kernel: setup ## the virtual engine's kernel, Debian's Linux 6.1 (3 minutes once, then seconds)
	@$(BIN)/tcpscape kernel build || echo "skipped: tests on the virtual engine, for the reason above"

test-all: setup kernel wheel ## everything, slow tests, the real kernel, the wheel and the tshark check too; prints why anything was skipped
	$(CARGO) test --workspace --exclude tcpscape-py --quiet -- --include-ignored
	$(BIN)/python -m pytest -m '' -rfEs

# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= 3600

# Bad inputs that the commands get.
FUZZ_CASES ?= 3000

fuzz: fuzz-rust fuzz-python ## searches for inputs that break a law, FUZZ_SECONDS for each target and FUZZ_CASES command lines; findings at the end

fuzz-rust:
	@$(PYTHON) scripts/fuzz.py $(FUZZ_SECONDS)

fuzz-python: setup
	$(BIN)/python tests/robustness --cases $(FUZZ_CASES) --jobs 2

check: setup check-rust ## formats, lints, types, sizes of files and functions, layers and circles of imports
	$(BIN)/ruff format --check --quiet python tests scripts examples benches
	$(BIN)/ruff check python tests scripts examples $(wildcard benches)
	$(BIN)/mypy
	$(BIN)/python scripts/sizes.py
	$(BIN)/python scripts/imports.py
	$(BIN)/python scripts/layers.py
	$(BIN)/python scripts/doors.py
	@if [ -x web/node_modules/.bin/prettier ]; then cd web && echo "tsc, oxlint and prettier on web/" && npm run --silent check; \
	else echo "skipped: types, lints and format of the page: web/node_modules is not there (Node 20.19 or newer, npm, network)"; fi

# Needs nothing of the setup, and is quick when nothing changed.
check-rust:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

bench: setup ## fidelity and speed, written to docs/fidelity.md and docs/performance.md
	$(BIN)/python benches/run.py

# Of benches/refresh.py: all that are stale without a name.
FIGURES ?=

refresh: setup ## every generated page, table and picture that a model with other results made (FIGURES="fidelity findings": only these); resumes
	@$(BIN)/python benches/refresh.py $(FIGURES)

site: setup ## the documentation as a site that opens from disk, in out/site; without a network; every link is checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@$(BIN)/python scripts/website/check.py out/site
	@echo 'open out/site/index.html'

clean: ## what was built
	rm -rf $(PAGES) $(SHARE) $(dir $(PAGE)) web/node_modules dist $(GUEST) $(LIVE) $(dir $(GUEST))seed.so target $(VENV) out .pytest_cache .ruff_cache .mypy_cache
