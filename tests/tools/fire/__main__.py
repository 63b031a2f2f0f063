"""`make fire`: plans of faults, seed by seed, each held against replay; docs/proof.md has what came of them."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from deploy.java.broker import Broker
from tests.tools.fire import life_page, page
from tests.tools.fire.life import Facts, run_life
from tests.tools.fire.plan import Plan, is_long, make_plan, needs
from tests.tools.fire.run import Outcome, run_plan
from tests.tools.fire.shorten import shorten
from twin.base.errors import MqtwinError


def main() -> int:
    """Return the exit status: 0 no difference, 1 a difference or a void set of runs, 2 wrong use."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the job and the disk do not stay behind
    if options.life_page:
        life_page.write(options.kept)
        return 0
    plans = [_read(options.plan)] if options.plan is not None else None
    if options.print:
        for plan in plans or [make_plan(options.seed)]:
            print(msgspec.json.format(msgspec.json.encode(plan), indent=1).decode())
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="mqtwin-fire-", dir="/tmp") as folder,  # a short path, for sockets
        Broker(data=Path(folder) / "kafka") as broker,
    ):
        fire = _Fire(broker, Path(folder))
        if options.life is not None:
            return fire.life(options)
        return fire.again(plans[0], is_short=options.shorten) if plans else fire.seeds(options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fire", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first one; default: the next one of docs/proof.md")
    parser.add_argument("--seeds", type=int, default=1_000_000, help="how many")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no other seed begins")
    parser.add_argument("--plan", type=Path, help="run the plan of a file, and nothing else")
    parser.add_argument("--print", action="store_true", help="print the plan and do not run it")
    parser.add_argument(
        "--life", type=float, metavar="MINUTES", help="a steady load for so long, with the seed's faults"
    )
    parser.add_argument("--rate", type=float, default=0.0, help="of the load, events/s; default: half of the peak")
    parser.add_argument("--kept", type=Path, default=page.ROOT / "build" / "life", help="folder for its data")
    parser.add_argument(
        "--life-page", action="store_true", help="write the page of the data in --kept, and run nothing"
    )
    parser.add_argument("--shorten", action="store_true", help="shorten plans that fail")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = max((outcome.seed for outcome in page.read_outcomes().outcomes), default=0) + 1
    return options


def _read(path: Path) -> Plan:
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except (OSError, msgspec.DecodeError) as error:
        sys.exit(f"--plan {path}: {error}; expected: a plan, as --print shows")
    wrong = needs(plan)
    if wrong:
        sys.exit(f"--plan {path}: {wrong}")
    return plan


class _Fire:
    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker, self._folder = broker, folder
        self._runs = 0
        self._commit = _commit()

    def seeds(self, options: argparse.Namespace) -> int:
        """Run seed after seed, and add each to the page."""
        until = time.monotonic() + 60 * options.minutes
        outcomes: list[Outcome] = []
        for seed in range(options.seed, options.seed + options.seeds):
            if time.monotonic() > until:
                break
            plan = make_plan(seed)
            outcomes.append(self._run(plan))
            page.add(outcomes[-1], len(os.sched_getaffinity(0)))
            if outcomes[-1].difference:
                self._keep(plan, outcomes[-1], is_short=options.shorten)
        missing = page.missing_instants(page.read_outcomes().outcomes)
        if missing:
            _say(f"void: no kill struck at {', '.join(missing)}")
        return 1 if missing or any(outcome.difference for outcome in outcomes) else 0

    def again(self, plan: Plan, *, is_short: bool) -> int:
        """Run a plan from a file."""
        outcome = self._run(plan)
        if outcome.difference and is_short:
            self._keep(plan, outcome, is_short=True)
        return 1 if outcome.difference else 0

    def life(self, options: argparse.Namespace) -> int:
        """Run the job under load for long."""
        facts = Facts(options.seed, len(os.sched_getaffinity(0)), options.life, rate=options.rate)
        outcome = run_life(facts, self._broker, self._folder / "life", options.kept, _say)
        outcome.commit = self._commit
        _say(outcome.difference or "no difference")
        is_flat = life_page.write(options.kept)
        if not is_flat:
            _say("something grew: docs/measuring.md has the figures")
        return 0 if is_flat and not outcome.difference else 1

    def _run(self, plan: Plan) -> Outcome:
        self._runs += 1
        _say(
            f"seed {plan.seed}: {len(plan.actions)} actions, {sum(map(is_long, plan.actions))} starts of Spark, "
            f"max_records {plan.max_records}, cores {plan.cores}{', a small disk' if plan.small_disk else ''}"
        )
        _say(f'again: git checkout {self._commit.rstrip("+")} && make fire ARGS="--seed {plan.seed} --seeds 1"')
        outcome = run_plan(plan, self._broker, f"fire-{self._runs}", self._folder / f"run-{self._runs}", _say)
        outcome.commit = self._commit
        _say(
            f"seed {plan.seed}: {outcome.validated} actions validated, {outcome.validations} validations, "
            f"{outcome.seconds:.0f} s; {outcome.difference or 'no difference'}"
        )
        return outcome

    def _keep(self, plan: Plan, outcome: Outcome, *, is_short: bool) -> None:
        failing = msgspec.structs.replace(plan, commit=self._commit, difference=outcome.difference)
        if is_short:
            failing = shorten(failing, lambda shorter: self._run(shorter).difference)
        path = page.PLANS / f"seed-{plan.seed}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(failing), indent=1) + b"\n")
        _say(f"kept: {path}")


def _commit() -> str:
    """Return the commit of the program; + where files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=page.ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "kernels", "twin", "streams", "deploy", "tests/tools/fire/*.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


try:
    sys.exit(main())
except MqtwinError as error:
    print(f"mqtwin fire: {error}", file=sys.stderr)
    sys.exit(1)
