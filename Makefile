# Everything runs in .venv, which the first command makes from constraints.txt.
#   make demo                     the main job on real input, ending in a report page
#   make test                     lint, types, unit tests, proofs, co-simulation
#   make tb                       a package's own test bench, in Icarus Verilog; SIM=verilator WAVES=1
#   make soak                     tests that are too long for CI; a second run resumes the first
#   make verilog BOARD=u55c       Verilog and everything Vitis needs, in build/verilog
#   make metrics                  golden figures of all engines, in tests/data/metrics.json
#   make docs                     the documentation as a site, in build/docs

# A misspelt variable is refused: it would make another package than was asked for.
VARIABLES := PYTHON BOARD ENGINE CONFIG WORKERS ONLY SINCE FRESH SIM WAVES LOOMWORK_OPTIMIZE
$(foreach name,$(.VARIABLES),$(if $(filter command line,$(origin $(name))),$(if $(filter $(VARIABLES),$(name)),,\
  $(error there is no variable $(name); there are $(VARIABLES)))))

PYTHON     ?= python3
BOARD      ?= u55c
ENGINE     ?= attention
CONFIG     ?=
WORKERS    ?= 3
SIM        ?= icarus
WAVES      ?= 0

BIN        := .venv/bin
READY      := .venv/ready
PYTEST     := $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder

# Hundreds of processes load the same modules: they are compiled once, whatever the user's shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test pytest lint regression soak metrics verilog tb docs calibrate doctor clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/loomwork demo

# Lint and types beside the tests: alone they would leave a core idle.
test: $(READY)
	$(MAKE) --no-print-directory --jobs 2 lint pytest

# With a result file for CI, also when a test fails.
pytest: $(READY)
	$(PYTEST) --junitxml build/tests.xml

lint: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

# The cocotb part alone.
regression: $(READY)
	$(PYTEST) tests/regression

# Tests that are too long for CI: more seeds, more sizes, every calibration point. A second run resumes the first.
# FRESH=1 begins anew. SINCE=commit runs the tests that depend on files changed since then. ONLY="path ..." runs these.
soak: $(READY)
	$(PYTEST) -p tests.support.soak.plugin -m soak $(if $(SINCE),--soak-since $(SINCE)) $(if $(FRESH),--soak-fresh) $(ONLY)

# All engines predicted, simulated and synthesized: an hour where nothing is in the cache. ONLY="conv prediction"
# looks at these alone.
metrics: $(READY)
	$(BIN)/python -m tests.support.metrics $(ONLY)

verilog: $(READY)
	$(BIN)/loomwork verilog --board $(BOARD) --engine $(ENGINE) $(if $(CONFIG),--config $(CONFIG))

# As docs/cocotb.md does it by hand: package, launch folder, and the package's own Makefile.
tb: EXAMPLE := attention --board $(BOARD) --config examples/attention.yaml
tb: $(READY)
	$(BIN)/loomwork verilog --engine $(EXAMPLE) -o build/tb/attention
	$(BIN)/loomwork launch $(EXAMPLE) --input examples/in.npz -o build/tb/card
	PATH="$(CURDIR)/$(BIN):$$PATH" $(MAKE) -C build/tb/attention/tb SIM=$(SIM) WAVES=$(WAVES) LAUNCH=../../card

# What builds the site is installed when somebody wants it; any warning fails it.
docs: $(READY) docs/constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r docs/constraints.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "python3 -m http.server --directory build/docs"

calibrate: $(READY)
	$(BIN)/loomwork calibrate

doctor: $(READY)
	$(BIN)/loomwork doctor

# A venv that was interrupted half way has no `ready` and is made anew. Python compiles a module when it is first
# loaded: compiling all of them takes half of the time, and most are never loaded.
$(READY): constraints.txt pyproject.toml
	@echo "Setting up .venv (once, about a minute)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Loomwork needs Python 3.11 or newer; set PYTHON=")'
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	touch $@

clean:
	rm -rf build
