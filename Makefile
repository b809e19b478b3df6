# The project's commands; `make help` lists them. The build itself is CMake's (CMakeLists.txt), and works without this
# file. Here: installing what is missing, one folder a build, and what is run in which.
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

BUILD := build
JOBS := $(shell nproc)
# ccache is used where there is one.
LAUNCHER := $(if $(shell command -v ccache),-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
# One build of the libraries serves the command and Python's module.
CONFIGURE := cmake -S . -G Ninja $(LAUNCHER) --log-level=WARNING -D CMAKE_POSITION_INDEPENDENT_CODE=ON
COMMAND_ALONE := -D WIRECALL_TESTS=OFF -D WIRECALL_BENCH=OFF -D WIRECALL_EXAMPLES=OFF
NINJA := cmake --build $(BUILD) --parallel $(JOBS)

# The Python package is installed into an environment of its own; its build folder is kept, so a change compiles little.
PYTHON_ENV := $(BUILD)/venv
PIP := $(PYTHON_ENV)/bin/pip --quiet --disable-pip-version-check

.PHONY: help run run-cluster build python typescript test clients check soak bench compare format clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

run: build  ## install what is missing, build, and serve the demo methods in the foreground (PORT=8545)
	@exec $(BUILD)/wirecall serve --demo $(if $(PORT),--port $(PORT))

run-cluster: build  ## the same of three brokers that are one, with a nats-server of theirs (PORT=8545)
	@tools/install_packages.sh cluster
	@WIRECALL=$(BUILD)/wirecall PORT=$(or $(PORT),8545) tools/run_cluster.sh

build:  ## build the command, as build/wirecall
	@tools/install_packages.sh run
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) -B $(BUILD) $(COMMAND_ALONE)
	@$(NINJA) --target wirecall_tool

# What the module takes from $(BUILD): the libraries and the command, where these were configured as above. It compiles
# its own sources alone then.
MODULE_TAKES := $$(grep -qs 'POSITION_INDEPENDENT_CODE:.*=ON' $(BUILD)/CMakeCache.txt && echo $(abspath $(BUILD)))

python:  ## install what is missing, and build and install the Python package into build/venv
	@tools/install_packages.sh python
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) -B $(BUILD) $(COMMAND_ALONE)
	@test -z "$(MODULE_TAKES)" || $(NINJA) --target wirecall_tool
	@test -x $(PYTHON_ENV)/bin/pip || { echo "Making $(PYTHON_ENV)"; python3 -m venv $(PYTHON_ENV); }
	@$(PIP) install nanobind scikit-build-core
	@echo "Compiling the Python package and installing it into $(PYTHON_ENV), with what its tests need (minutes at first)"
	@$(if $(LAUNCHER),CMAKE_CXX_COMPILER_LAUNCHER=ccache) CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	  $(PIP) install --no-build-isolation --config-settings=build-dir=$(abspath $(BUILD))/python \
	  --config-settings=cmake.define.WIRECALL_BUILD="$(MODULE_TAKES)" './python[test]'

typescript: build  ## install what is missing, and check, build and test the TypeScript client, in clients/typescript
	@BUILD=$(BUILD) tools/typescript.sh

test:  ## install what is missing, build everything, and run all tests
	@tools/install_packages.sh test
	@$(CONFIGURE) -B $(BUILD) -D WIRECALL_TESTS=ON -D WIRECALL_BENCH=ON -D WIRECALL_EXAMPLES=ON \
	  -D WIRECALL_UNITY=ON
	@$(NINJA)
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure
	@$(MAKE) python
	@$(PYTHON_ENV)/bin/python -m pytest --quiet -rs python/tests
	@BUILD=$(BUILD) tools/typescript.sh --if-there
	@tools/skipped_tests.py $(BUILD)/Testing/Temporary/LastTest.log

clients:  ## run clients that others have written against our server, those in Go and Rust as well, and Autobahn's cases (minutes)
	@tools/install_packages.sh test
	@$(CONFIGURE) -B $(BUILD) -D WIRECALL_TESTS=ON -D WIRECALL_CONFORMANCE=ON
	@$(NINJA) --target served echo wirecall_tool
	@ctest --test-dir $(BUILD) --tests-regex '^(websocket|plain_nats)$$' --output-on-failure
	@python3 tests/clients/run.py $(BUILD)/tests/clients/served --environment $(BUILD)/tests/clients/environment --all

check:  ## format, include ranks, and all tests under clang's sanitizers with a short fuzzing
	@tools/install_packages.sh check
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/check.sh

soak: build python  ## 60 s of a broker under attack, and 60 s with Python among its providers, a durable store whose broker is killed a thousand times and loses its power as often, 600 s of a storm on each engine, ten million differential executions, 300 s of each fuzzer, 100 interpreters that end, two million batched calls, a thousand processes on shared memory that are killed (BROKER_SOAK_SECONDS, STORM_SECONDS, CHURN_SECONDS, DURABLE_KILLS, SOAK_RUNS, SOAK_SECONDS)
	@tools/install_packages.sh check
	@BUILD=$(BUILD) JOBS=$(JOBS) tools/soak.sh
	@$(CONFIGURE) -B $(BUILD) -D WIRECALL_TESTS=ON -D WIRECALL_UNITY=ON
	@$(NINJA) --target test_server
	@WIRECALL_KILLS=1000 $(BUILD)/tests/test_server --gtest_brief=1 --gtest_filter='ShmKilled.*'
	@$(PYTHON_ENV)/bin/python -B tests/broker_check/check.py $(BUILD)/wirecall --seconds $${BROKER_SOAK_SECONDS:-60} \
	  --provider python/tests/broker_provider.py
	@WIRECALL_EXITS=100 $(PYTHON_ENV)/bin/python -m pytest --quiet python/tests/test_exit.py
	@WIRECALL_BATCHED_CALLS=1000000 $(PYTHON_ENV)/bin/python -m pytest --quiet python/tests/test_memory.py -k batched

bench: python  ## build and run the benchmarks, one table each
	@tools/install_packages.sh bench
	@$(CONFIGURE) -B $(BUILD) -D WIRECALL_BENCH=ON -D WIRECALL_EXAMPLES=ON
	@$(NINJA)
	@BUILD=$(BUILD) tools/bench.sh

compare: build python  ## measure calls by WebSocket, and of a batched model, beside the servers of others, which it installs into build/bench-websocket and build/bench-batching
	@python3 bench/websocket/measure.py $(BUILD)/wirecall
	@python3 bench/batching/compare.py --python $(PYTHON_ENV)/bin/python

format:  ## format all sources in place
	@tools/install_packages.sh check
	@git ls-files -z --cached --others --exclude-standard '*.cpp' '*.hpp' | xargs -0 clang-format-19 -i

clean:  ## remove what was built
	rm -rf $(BUILD)
