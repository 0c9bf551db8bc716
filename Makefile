# Every task of the project. `make help` lists them.

EMULATOR ?= ministack
export EMULATOR

PYTHON ?= $(shell for p in python3.11 python3; do if $$p -c '' >/dev/null 2>&1; then echo $$p; break; fi; done)
RUN := .venv/bin/python -m
TIERS := tests/unit tests/contract tests/handlers tests/infra tests/node tests/e2e
GATE := tests/unit/domain/test_target.py tests/contract/test_destinations_sent.py tests/contract/test_redirects.py \
	tests/handlers/test_destinations_registered.py tests/handlers/test_inner_names.py
CODE := $(wildcard app.py) chalicelib infra tests

.DEFAULT_GOAL := help
.PHONY: help dev api-restart code relay-node receiver unit test check format gate package deploy destroy resources post-deploy bench bench-isolation bench-replays bench-sender bench-node bench-hold bench-sustained bench-sweep cost simulate chaos newcomer rebuild lock clean

help: ## list the tasks
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='|' read -r task what; do printf '%-21s %s\n' "$$task" "$$what"; done

dev: .venv/ready .venv-emulator/ready ## run the whole of Relay here until Ctrl-C (EMULATOR=ministack|moto|localstack; ARGS="--api-port 8081" and the like)
	@$(RUN) infra.local.dev $(ARGS)

api-restart: .venv/ready ## restart only the API of a running `make dev`
	@$(RUN) infra.local.dev --restart-api

code: .venv/ready ## show the code of the development tenant's second factor
	@$(RUN) infra.local.code

relay-node: .venv/ready ## run only a relay node for WebSockets, on port 4000
	@$(RUN) chalicelib.node

receiver: .venv/ready ## run only the misbehaving receiver
	@$(RUN) tests.receiver

unit: .venv/ready ## run the inner loop: the core and the use cases (ARGS="-k name" for some of them)
	@$(RUN) pytest tests/unit $(ARGS)

test: .venv/ready .venv-emulator/ready .venv-lint/ready .venv-openapi/ready ## run every tier of tests
	@$(RUN) pytest $(TIERS) $(ARGS)

gate: .venv/ready .venv-emulator/ready ## run the release gate alone: no request goes where it may not
	@$(RUN) pytest $(GATE) $(ARGS)

contract: .venv/ready .venv-emulator/ready .venv-openapi/ready ## try the published contract against a running Relay (4 minutes)
	@$(RUN) pytest tests/e2e/test_contract.py $(ARGS)

check: .venv/ready ## check format, lint, types, imports and requirements
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy $(CODE)
	@.venv/bin/lint-imports --no-logo
	@$(RUN) infra.pins
	@$(RUN) infra.egress

format: .venv/ready ## format the code and mend what the linter can mend
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

package: .venv/ready ## build the CloudFormation template and the archive into build/package
	@$(RUN) infra.package

deploy: .venv/ready ## bring STAGE=prod to this version and look whether an event arrives (RELEASE=, VERIFY=no, TO=url)
	@$(RUN) infra.deploy --stage '$(STAGE)' --release '$(RELEASE)' --to '$(TO)' $(if $(filter no,$(VERIFY)),--no-verify)

destroy: .venv/ready ## take STAGE=staging away but for its data (DATA=delete CONFIRM=name for that too)
	@$(RUN) infra.destroy --stage '$(STAGE)' --data '$(or $(DATA),keep)' --confirm '$(CONFIRM)'

resources: .venv/ready ## make what `chalice deploy` needs of STAGE=prod, and the copy of the app that it deploys
	@$(RUN) infra.make_resources --stage '$(STAGE)'

post-deploy: .venv/ready ## say of STAGE=prod what `chalice deploy` cannot, and look whether it holds (TO=url)
	@$(RUN) infra.post_deploy --stage '$(STAGE)' --to '$(TO)'

bench: .venv/ready .venv-emulator/ready ## measure throughput into build/bench
	@$(RUN) tests.bench

bench-isolation: .venv/ready .venv-emulator/ready ## measure what misbehaving endpoints do to healthy ones (15 minutes)
	@$(RUN) tests.bench.isolation

bench-replays: .venv/ready .venv-emulator/ready ## measure what a bulk replay does to first attempts of the same endpoint
	@$(RUN) tests.bench.during_replays

bench-sender: .venv/ready ## measure the CPU of one POST over TLS against other senders
	@$(RUN) tests.bench.sender

bench-node: .venv/ready ## measure what a relay node carries, and what a frame and an idle socket cost
	@$(RUN) tests.bench.node

bench-hold: .venv/ready ## count what holding a backlog costs in AWS calls, in simulated time
	@$(RUN) tests.bench.hold

bench-sustained: .venv/ready .venv-emulator/ready ## measure a minute of events in tens at 8 and at 200 endpoints, and who uses the CPU
	@$(RUN) tests.bench.sustained

bench-sweep: .venv/ready .venv-emulator/ready ## walk lanes, pollers, slow receivers and payloads, and write the table (6 minutes)
	@$(RUN) tests.bench.sweep

cost: .venv/ready .venv-emulator/ready ## reckon dollars per million deliveries and per idle month (counts first: 4 minutes)
	@$(RUN) tests.bench.cost

simulate: .venv/ready ## simulate 40,000 endpoints and write docs/scale.md (15 minutes; ARGS=--page for the page alone)
	@$(RUN) tests.simulation $(ARGS)

chaos: .venv/ready .venv-emulator/ready .venv-chaos/ready ## kill, empty and break things while events flow, and see what was kept (10 minutes)
	@$(RUN) tests.bench.chaos

newcomer: .venv/ready ## time a newcomer's first delivery, from a fresh clone, into build/newcomer.json (minutes)
	@$(RUN) tests.e2e.newcomer

rebuild: .venv/ready .venv-emulator/ready ## make what is owed, dead letters and gates of a stopped local run again from history
	@$(RUN) infra.local.rebuild

lock: .venv-lock/ready ## pin what requirements/*.in ask for, with hashes (UPGRADE=--upgrade for the newest)
	@for file in lock runtime installer node dev emulator lint chaos openapi; do \
		if [ $$file = runtime ]; then pinned=requirements.txt; else pinned=requirements/$$file.txt; fi; \
		.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --custom-compile-command 'make lock' $(UPGRADE) \
			requirements/$$file.in -o $$pinned || exit 1; \
	done

clean: ## forget the local run: endpoints, events, payloads
	@rm -rf .relay
	@echo 'Forgot the local run: .relay/ is gone.'

# A virtual environment is ready when it holds exactly what its requirements pin.
.venv/ready: requirements/dev.txt requirements/installer.txt
	$(call environment,.venv,requirements/dev.txt)
.venv-%/ready: requirements/%.txt
	$(call environment,.venv-$*,requirements/$*.txt)

define environment
@if [ -z '$(PYTHON)' ]; then echo 'Relay needs Python 3.11 or newer, found as python3.11 or python3.' >&2; exit 1; fi
@$(PYTHON) -m infra.local.environments $(1) $(2)
endef
