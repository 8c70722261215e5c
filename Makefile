# `make` alone prints the targets. Nothing is installed outside .venv.

PYTHON ?= python3
ALL_TESTS := -n auto --dist loadgroup
PYTEST_ARGS ?= $(ALL_TESTS) -m "not slow and not extended"
MINUTES ?= 60
ATTACK_ARGS ?=

BIN := .venv/bin
# Python compiles what it loads: that takes a third of the time that pip takes to compile everything.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
TYPED := $(wildcard evalstore tests benches tools migrations)
# The tests start the program often; compiled once it starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help example test attack lint check fix docs site screenshots bench clean

help: ## Print the targets
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

example: .venv/.installed ## Run the example workspace: offline, without a key
	$(BIN)/evalstore -C example run --fail-on none
	@echo
	@echo "What to try next:"
	@echo "  $(BIN)/evalstore -C example view               browse the cases and answers"
	@echo "  $(BIN)/evalstore -C example log                the run you have just made"
	@echo "  edit a file in example/tests, then:"
	@echo "  $(BIN)/evalstore -C example status --explain   what a run would ask or judge again, and why"

test: .venv/.installed-dev ## Run the everyday tests (PYTEST_ARGS="-k name" for some, "-m slow" for the slow ones)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

attack: .venv/.installed-dev ## Attack the program for an hour (MINUTES=10 for less); fails when something gets through
	$(BIN)/python -m tests.hostile.campaign --minutes $(MINUTES) $(ATTACK_ARGS)

lint: .venv/.installed-dev ## Check format, style, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict $(TYPED)
	$(BIN)/lint-imports

check: .venv/.installed-dev ## Everything a change must pass: lint and all tests, also the extended ones
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# Beside the tests, which leave a processor free now and then.
	@mkdir -p build
	@{ $(BIN)/mypy --strict $(TYPED) && $(BIN)/lint-imports; } > build/lint.txt 2>&1 & lint=$$!; \
		$(BIN)/python -m pytest $(ALL_TESTS); tests=$$?; \
		wait $$lint; lint=$$?; cat build/lint.txt; exit $$((tests | lint))

fix: .venv/.installed-dev ## Format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.installed-dev ## Write docs/cli.md, the tables and the pictures of docs/ again
	$(BIN)/python -m tools.cli_docs > docs/cli.md.new
	mv docs/cli.md.new docs/cli.md
	$(BIN)/python tools/browser_docs.py
	$(BIN)/python -m tools.check_docs
	$(BIN)/python -m tools.mcp_docs
	$(BIN)/evalstore check --schema --into docs/schemas
	$(BIN)/python -m tools.screenshots

site: .venv/.installed-dev .venv-site/.installed ## Build the docs site in build/site
	$(BIN)/python -m tools.site_source build
	$(BIN)/python -m tools.example_report build
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --strict --quiet -f build/mkdocs.yml
	@echo "build/site/index.html is the first page."

screenshots: .venv/.installed-dev ## Photograph the report for docs/ again (needs Chromium)
	$(BIN)/python -m tools.report_pictures docs/images

bench: .venv/.installed-dev ## Measure
	$(BIN)/python -m benches

clean: ## Remove caches and built files (.venv stays)
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache .coverage htmlcov docs/cli.md.new
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

# A stamp says that the environment holds what these two files ask for.
.venv/.installed: pyproject.toml constraints.txt
	$(call environment)
	@echo "Installing evalstore into .venv; the first time takes about a minute."
	@$(PIP) -e .
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt
	$(call environment)
	@echo "Installing evalstore and its tools into .venv; the first time takes about a minute."
	@$(PIP) -e '.[dev]'
	@touch .venv/.installed $@

.venv/.installed-readers: tools/readers-requirements.txt .venv/.installed-dev
	@echo "Installing programs that read what is exported."
	@$(PIP) -r tools/readers-requirements.txt
	@touch $@

.venv-site/.installed: tools/site-requirements.txt
	$(PYTHON) -m venv --clear .venv-site
	.venv-site/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# The pip that comes with Python may take three times as long to choose the packages.
define environment
@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "error: evalstore needs Python 3.11 or newer, and '$(PYTHON)' is not" >&2; \
		echo "hint: name one, for example 'make $(MAKECMDGOALS) PYTHON=python3.12'" >&2; \
		exit 1; \
	}; \
	$(PYTHON) -m venv --clear .venv && $(PIP) --upgrade pip; \
}
endef
