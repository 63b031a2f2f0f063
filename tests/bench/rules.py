"""The cost of each rule of the event loop: plain puts and gets with the rule, and compiled without it.

Each is a process of its own with machine code of its own: some functions are replaced by ones that do nothing before
the loop is compiled. What a store then holds is wrong; only its time counts. Run `python -m tests.bench.rules`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELD = 10_000
_ROUNDS, _REPEATS = 5, 40


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. functions: MODULE.NAME of those that are replaced, and whether that returns False instead of nothing."""

    name: str
    functions: dict[str, bool]


ALL = "all of these"
_WHOLE = "whole loop"
RULES = (
    Rule("flows of puts and gets by class and queue", dict.fromkeys(("meters.count_put", "meters.count_get"), False)),
    Rule("flows of what is removed", {"meters.count_removal": False}),
    Rule("thresholds of the store and of its queues", {"watch.look": True, "watch.look_at_queue": True}),
    Rule("marks of written rows and pages", {"layout.touch": False, "layout.touch_row": False}),
    Rule("a clock that goes back", {"clock.turns_back": True}),
)


def main() -> int:
    """Measure the whole loop and each variant in turn, and print nanoseconds an event."""
    if len(sys.argv) > 1:
        print(_nanoseconds(sys.argv[1]))
        return 0
    variants = {_WHOLE: (), **{rule.name: (rule,) for rule in RULES}, ALL: RULES}
    measured: dict[str, list[float]] = {name: [] for name in variants}
    with tempfile.TemporaryDirectory(prefix="mqtwin-rules-") as folder:
        for round_number in range(_ROUNDS):
            for place, name in enumerate(variants):
                environment = {**os.environ, "MQTWIN_CACHE": str(Path(folder) / str(place))}
                command = [sys.executable, "-m", "tests.bench.rules", name]
                out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                measured[name].append(float(out))
                print(f"round {round_number + 1}: {name}: {float(out):.1f} ns", file=sys.stderr)
    whole = statistics.median(measured[_WHOLE])
    print(f"| rule, at {HELD:,} messages held | ns an event | of the loop |\n| --- | ---: | ---: |")
    print(f"| {_WHOLE} | {whole:.1f} | |")
    for name, times in measured.items():
        if name != _WHOLE:
            cost = statistics.median(times)
            print(f"| {name} | {whole - cost:.1f} | {100 * (whole - cost) / whole:.0f} % |")
    return 0


def _nanoseconds(name: str) -> float:
    """Return the nanoseconds of an event of the loop without a rule, the best of some medians."""
    import kernels.event_loop
    import kernels.held  # noqa: F401

    for rule in RULES:
        if name in (rule.name, ALL):
            for function, is_false in rule.functions.items():
                _replace(function, is_false=is_false)
    from tests.bench.mechanisms import MECHANISMS, rate

    with tempfile.TemporaryDirectory() as folder:
        return 1e3 / rate(MECHANISMS[0], Path(folder), HELD, _REPEATS)


def _replace(path: str, *, is_false: bool) -> None:
    """Put a kernel that does nothing in the place of one, wherever it is named."""
    module, _, name = path.partition(".")
    original = getattr(sys.modules[f"kernels.{module}"], name)
    nothing = _nothing(original.py_func.__code__.co_argcount, is_false=is_false)
    for place, loaded in list(sys.modules.items()):
        if place.startswith("kernels."):
            for attribute, value in list(vars(loaded).items()):
                if value is original:
                    setattr(loaded, attribute, nothing)


def _nothing(arguments: int, *, is_false: bool) -> Any:
    from kernels._compile import kernel

    def nothing_of_1(_a: Any) -> None:
        return None

    def nothing_of_2(_a: Any, _b: Any) -> None:
        return None

    def nothing_of_3(_a: Any, _b: Any, _c: Any) -> None:
        return None

    def false_of_2(_a: Any, _b: Any) -> bool:
        return False

    return kernel(false_of_2 if is_false else (nothing_of_1, nothing_of_2, nothing_of_3)[arguments - 1])


if __name__ == "__main__":
    sys.exit(main())
