"""Many damaged inputs for the parsers of feeds: `python -m tests.tools.fuzz [FORMAT...] --inputs 1000000`.

Parsers take turns, so that a run that is stopped has tried each of them alike. The rounds done and what became of
their inputs are kept under build/fuzz; the next run continues after them. An input that breaks a rule is written there.
The exit status is 1 if there was one, in this run or before it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.tools.fuzz.rounds import INPUTS, Failure, Fuzzer, Tally
from twin.feeds import FORMATS

ROOT = Path(__file__).resolve().parents[3]
TURN = 100  # rounds


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz", description=__doc__)
    parser.add_argument("formats", nargs="*", choices=[[], *FORMATS], metavar="FORMAT", help="by default all")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each parser, with those of earlier runs")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz", help="of what is kept")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = arguments.formats or list(FORMATS)
    tallies = {name: load(arguments.folder, name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        fuzzers = {name: Fuzzer(name, Path(folder)) for name in names}
        while waiting := [name for name in names if tallies[name].inputs < arguments.inputs]:
            for name in waiting:
                play_turn(fuzzers[name], tallies[name], arguments.inputs, arguments.folder)
    print(report(tallies))
    return 1 if any(tally.failures for tally in tallies.values()) else 0


def load(folder: Path, name: str) -> Tally:
    """Return what earlier runs did."""
    path = folder / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Tally) if path.is_file() else Tally()


def play_turn(fuzzer: Fuzzer, tally: Tally, inputs: int, folder: Path) -> None:
    """Play some rounds behind those of a tally and keep it.

    Args:
        fuzzer: fuzzer of the format.
        tally: what was done; changed.
        inputs: where it ends.
        folder: folder for what is kept.
    """
    for _ in range(TURN):
        if tally.inputs >= inputs:
            break
        done, failures = fuzzer.play(tally.inputs // INPUTS)
        tally.add(done)
        for failure in failures:
            keep(failure, folder)
    (folder / f"{fuzzer.name}.json").write_bytes(msgspec.json.encode(tally))


def keep(failure: Failure, folder: Path) -> None:
    """Write an input that broke a rule."""
    path = folder / f"{failure.name}-{failure.round}.bin"
    path.write_bytes(failure.page)
    print(f"{failure.name}, round {failure.round}: {failure.reason}; input: {path}", flush=True)


def report(tallies: dict[str, Tally]) -> str:
    """Return a line a parser."""
    heading = (
        f"{'parser':<12}{'inputs':>12}{'refused':>12}{'events':>12}{'failures':>10}{'slowest ms':>12}{'us/input':>10}"
    )
    return "\n".join(
        [
            heading,
            *(
                f"{name:<12}{t.inputs:>12,}{t.refused:>12,}{t.events:>12,}{t.failures:>10,}"
                f"{t.slowest * 1e3:>12.1f}{t.seconds / max(t.inputs, 1) * 1e6:>10.0f}"
                for name, t in tallies.items()
            ),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
