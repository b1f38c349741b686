# `make help` lists what can be made. Every target sets up what it needs; nothing has to be installed by hand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(wildcard src/kernel/*.* src/kernel/*/*.*) CMakeLists.txt pyproject.toml constraints.txt
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
BUILD_TOOLS := scikit-build-core nanobind numpy cmake ninja
# Two torch processes that spin while waiting make each other ten times slower.
export OMP_WAIT_POLICY := passive

.PHONY: help build test test-cluster test-extras test-asan fuzz test-tsan test-compilers wheels test-thorough mutants torture torture-disk lint format demo bench bench-big bench-checkpoint bench-train bench-ray drift stress docs docs-serve clean

help:  ## Say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip

# torch comes first and pinned: a looser request elsewhere would bring gigabytes of CUDA.
.stamps/tools: constraints.txt pyproject.toml | $(BIN)/python
	@mkdir -p .stamps
	$(INSTALL) torch
	$(INSTALL) $(BUILD_TOOLS) --group test --group lint --group docs --group integrations --group ray
	@touch $@

.stamps/build: .stamps/tools $(KERNEL)
	$(INSTALL) --no-build-isolation --editable '.[all]'
	@touch $@

build: .stamps/build  ## Build the kernel and install the package with all extras into .venv

# A file's tests stay in one process, for what they share.
test: .stamps/build  ## Run the test suite, on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-thorough: .stamps/build  ## Run the property tests with many more examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest tests/memory

test-cluster: .stamps/build  ## Test on Ray, also with a machine cut off its network (root, `ip netns`)
	PSER_TEST_CLUSTER=1 $(BIN)/python -m pytest tests/cluster

# Kernels built in another way lie under build/ and are tested from an environment without the editable install.
.stamps/kernels: constraints.txt
	@mkdir -p .stamps
	$(PYTHON) -m venv .venv-kernels
	.venv-kernels/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	.venv-kernels/bin/pip install --quiet --constraint constraints.txt numpy scipy psutil pytest hypothesis $(BUILD_TOOLS)
	@touch $@

KERNEL_TESTS := tests/memory tests/test_model.py tests/learner/tabular/test_q_learning.py tests/learner/test_rmsprop_kernel.py tests/learner/test_planes_kernel.py tests/learner/test_noise_kernel.py tests/learner/test_huber_kernel.py

.stamps/asan: .stamps/kernels $(KERNEL) $(shell find src/pser -name '*.py')
	rm -rf build/kernel-asan
	.venv-kernels/bin/pip install --quiet --no-build-isolation --no-deps --target build/kernel-asan \
		-C cmake.define.PSER_SANITIZE=address,undefined -C build-dir=build/cmake-asan .
	@touch $@

test-asan: .stamps/asan  ## Run the memory's tests against an address-sanitized kernel
	LD_PRELOAD=$$(gcc -print-file-name=libasan.so):$$(gcc -print-file-name=libstdc++.so) ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	PSER_EXPECT_SANITIZER=address PYTHONPATH=build/kernel-asan .venv-kernels/bin/python -m pytest $(KERNEL_TESTS)

# Wandb, trackio and JAX: 780 MB that no other test needs.
test-extras: .stamps/build  ## Run the tests that `make test` skips for want of wandb, trackio or JAX
	$(BIN)/pip install --quiet --disable-pip-version-check --no-warn-conflicts --upgrade --target build/extras -r tests/extras.txt
	PYTHONPATH=build/extras $(BIN)/python -m pytest -n 0 tests/records/test_trackers.py tests/memory/test_arrays.py

# FUZZ=--seconds=3600, FUZZ="--seed=5 --inputs=1000000 --seconds=1e9", FUZZ="--seed=5 --only=1234"
FUZZ ?= --seconds=300
fuzz: .stamps/asan  ## Load crafted files against an address-sanitized kernel: 300 s, or FUZZ=--seconds=N
	LD_PRELOAD=$$(gcc -print-file-name=libasan.so):$$(gcc -print-file-name=libstdc++.so) \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=8 \
	PYTHONPATH=build/kernel-asan .venv-kernels/bin/python -m tests.fuzz $(FUZZ)

.stamps/tsan: .stamps/kernels $(KERNEL) $(shell find src/pser -name '*.py')
	rm -rf build/kernel-tsan
	.venv-kernels/bin/pip install --quiet --no-build-isolation --no-deps --target build/kernel-tsan \
		-C cmake.define.PSER_SANITIZE=thread -C build-dir=build/cmake-tsan .
	@touch $@

# Python itself is not instrumented, but its locks are seen, so nothing has to be suppressed. setarch: TSan of GCC 12 and older
# needs addresses that are not randomised too widely.
test-tsan: .stamps/tsan  ## Run the thread tests against a thread-sanitized kernel
	LD_PRELOAD=$$(gcc -print-file-name=libtsan.so):$$(gcc -print-file-name=libstdc++.so) \
	TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 PSER_EXPECT_SANITIZER=thread PYTHONPATH=build/kernel-tsan \
		setarch -R .venv-kernels/bin/python -m pytest tests/memory/test_threads.py tests/memory/test_locking.py

test-compilers: .stamps/kernels  ## Build with GCC 11, GCC 12, clang and for aarch64: no warning, tests pass, the same bits
	.venv-kernels/bin/python tests/compilers/compare.py

# WHEEL_TESTS=tests/memory/test_ring.py tests only that
wheels: | $(BIN)/python  ## Build manylinux wheels into dist/, check them, test each Python's in a clean environment
	$(BIN)/python tests/wheels/run.py $(WHEEL_TESTS)

JOBS ?= 2
mutants: .stamps/build  ## Put small faults into copies of the source: each must meet a failing test (tens of minutes; JOBS=2 at a time)
	$(BIN)/python tests/mutants/meet.py --jobs $(JOBS)

KILLS ?= 200
torture: .stamps/build  ## Kill trainings KILLS times (200) with SIGKILL; each must end as if never interrupted
	$(BIN)/python tests/run/torture.py --kills $(KILLS)

DISK_KILLS ?= 50
torture-disk: .stamps/build  ## Kill processes that add to memories on disk DISK_KILLS times (50); nothing may be wrong with what is left
	$(BIN)/python tests/memory/kill_disk.py --kills $(DISK_KILLS)

lint: .stamps/build  ## Check formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .stamps/build  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: .stamps/build  ## The main job in a few minutes: study, short training comparison, report, a look into a memory
	$(BIN)/pser demo

bench: | $(BIN)/python  ## Measure the memory beside other libraries; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks.run

bench-train: .stamps/build  ## Measure training speed beside stable-baselines3, JAX and the version before
	$(BIN)/python -m benchmarks.train.run

bench-ray: .stamps/build  ## Measure what Ray costs, beside TorchRL and RLlib; writes docs/benchmarks-ray.md
	$(BIN)/python -m benchmarks.cluster.run

BIG ?=
bench-big: .stamps/build  ## Ten million Atari transitions: size, add, sample, save; BIG="--storage disk" keeps them on disk
	$(BIN)/python -m benchmarks.big $(BIG)

CHECKPOINT ?=
bench-checkpoint: .stamps/build  ## Checkpoints of a million Atari transitions: time beside a whole one, how long training waits; CHECKPOINT="--frames plain"
	$(BIN)/python -m benchmarks.checkpoint $(CHECKPOINT)

drift: .stamps/build  ## 100 million random updates: does the root still equal the sum of its leaves?
	$(BIN)/python -m benchmarks.drift

stress: .stamps/build  ## Two threads on one memory for 30 seconds
	$(BIN)/python -m benchmarks.stress

docs docs-serve: export NO_MKDOCS_2_WARNING := 1
docs: .stamps/build  ## Build the documentation site into site/
	$(BIN)/mkdocs build --strict

docs-serve: .stamps/build  ## Serve the documentation on 127.0.0.1:8000, built anew when a page changes
	$(BIN)/mkdocs serve --strict

clean:  ## Remove what was built (not .venv)
	rm -rf build dist site .stamps src/pser/*.so
