"""Outputs of the product as files, to hold a change of form by: `python -m tests.tools.freeze write|compare FOLDER`.

Of every recording of the suite there are alerts, states, letters, the report, the verdict, plans, and the JSON of the
console at six moments; beside them the help of each command, everything that is made from types, and what the cases of
feeds give. `compare` makes all again, names each file that differs with its first line that does, and ends with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

import twin
from deploy.cli import main as run_command
from deploy.console.past import PastTwins
from docs.make_commands import commands
from docs.make_schemas import ROOT, outputs
from tests.cases import FEEDS, outcome
from tests.support.estates import facility_estate, small_estate
from tests.support.mixed import mixed_estate, mixed_recording
from twin.playback.timeline import Timeline
from twin.simulation import scenarios

Outputs = Mapping[str, bytes]
_JOINED = ROOT.parent / "shared" / "fixtures" / "joined"
_MOMENTS = 6  # of a recording, at which the page is kept
_SIZES = (
    ("structure", "--messages", "64K:5000", "--messages", "2K:100000"),
    ("threshold", "--backlog", "5M"),
    ("smds", "--messages", "200K:5000"),
    ("queue-file", "--messages", "4K:100000"),
    ("page-set", "--messages", "4K:100000"),
)


def output_of(*words: str) -> bytes:
    """Return what a command prints and its exit status."""
    status: object
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = run_command(list(words))
        except SystemExit as end:
            status = end.code
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return out.buffer.getvalue() + f"{errors.getvalue()}status {status}\n".encode()


def of_recording(recording: Path, estate: Path) -> Outputs:
    """Return everything that a recording gives."""
    alerts, states, letters = (recording.with_name(f"{recording.stem}.{name}") for name in ("alerts", "state", "dlq"))
    common = (str(recording), "--estate", str(estate))
    files = {"replay": output_of("replay", *common, f"--alerts={alerts}", f"--state={states}", f"--dlq={letters}")}
    files |= {f"{path.suffix[1:]}.ndjson": path.read_bytes() for path in (alerts, states, letters) if path.exists()}
    rest = (f"--recording={recording}", f"--estate={estate}", "--json")
    files |= {f"{name}.json": output_of(name, *rest) for name in ("report", "commission")}
    stores = [own["store"] for own in map(msgspec.json.decode, files.get("state.ndjson", b"").splitlines())]
    for store in stores:
        files |= {f"{name}/{store}.json": output_of(name, store, *rest) for name in ("advise", "whatif")}
    past = PastTwins(Timeline(recording, twin.load_estate(estate)))
    times = past.moments.times
    for number in range(_MOMENTS):
        time = times[(len(times) - 1) * number // (_MOMENTS - 1)]
        files[f"console/{number}.json"] = past.model_at(time).changes(0)[1]
    files |= {f"console/history/{store}.json": msgspec.json.encode(past.history(store)) for store in stores}
    changing = re.compile(rb"[\d,.]+ events/s|" + re.escape(str(recording.parent).encode()))
    return {name: changing.sub(b"...", content) for name, content in files.items()}


def _simulated(name: str) -> Outputs:
    """Return what a scenario gives: on three structures where it runs there, else with a store of every kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.arrow"
        for estate in (small_estate(Path(folder)), facility_estate(Path(folder)), mixed_estate(Path(folder))):
            with contextlib.suppress(twin.MqtwinError):
                twin.simulate(twin.make_scenario(name), twin.load_estate(estate), path, seed=3)
                return of_recording(path, estate)
    raise AssertionError(f"{name} runs on no estate")


def _mixed() -> Outputs:
    with tempfile.TemporaryDirectory() as folder:
        estate = mixed_estate(Path(folder))
        return of_recording(mixed_recording(Path(folder), twin.load_estate(estate)), estate)


def _joined(name: str) -> Outputs:
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / f"{name}.ndjson"
        recording.write_bytes((_JOINED / recording.name).read_bytes())
        own = _JOINED / f"{name}.toml"
        return of_recording(recording, own if own.exists() else _JOINED / "estate.toml")


def _feeds() -> Outputs:
    files: dict[str, bytes] = {}
    for folder in sorted({path.parent for path in FEEDS.glob("*/*/in*")}):
        own = folder.relative_to(FEEDS)
        files |= {f"{own}/{name}": text.encode() for name, text in outcome(folder).items()}
    return files


def _help() -> Outputs:
    return {f"{name}.txt": output_of(*name.split(), "--help") for name, _ in commands()}


def _generated() -> Outputs:
    return {str(path.relative_to(ROOT)): text.encode() for path, text in outputs().items()}


def _sizes() -> Outputs:
    return {f"{words[0]}.json": output_of("size", *words, "--json") for words in _SIZES}


def parts() -> dict[str, Callable[[], Outputs]]:
    """Return the functions that make the outputs, by the folder of their files."""
    own: dict[str, Callable[[], Outputs]] = {"help": _help, "made": _generated, "sizes": _sizes, "feeds": _feeds}
    own |= {f"recordings/{name}": partial(_simulated, name) for name in scenarios()}
    own["recordings/mixed"] = _mixed
    own |= {f"recordings/joined-{path.stem}": partial(_joined, path.stem) for path in sorted(_JOINED.glob("*.ndjson"))}
    return own


def differences(before: Outputs, now: Outputs) -> Iterator[str]:
    """Yield a line per file that differs: its name, and its first line that does."""
    for name in sorted(before.keys() | now.keys()):
        if name not in now or name not in before:
            yield f"{name}: {'new' if name in now else 'gone'}"
        elif before[name] != now[name]:
            pairs = zip(before[name].splitlines(), now[name].splitlines(), strict=False)
            number, (old, new) = next(
                ((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, (b"its length", b""))
            )
            place = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
            first = max(0, place - 40)
            yield f"{name}, line {number}: {old[first : place + 80]!r} -> {new[first : place + 80]!r}"


def main(words: list[str] | None = None) -> int:
    """Write or compare the outputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", help="parts that contain this text; may be repeated")
    arguments = parser.parse_args(words)
    wrong = 0
    for part, make in parts().items():
        if arguments.only and not any(text in part for text in arguments.only):
            continue
        root = arguments.folder / part
        files = make()
        if arguments.action == "write":
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)
            print(f"{part}: {len(files)} files, {zlib.crc32(b''.join(files.values())):08x}", flush=True)
        else:
            before = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
            own = list(differences(before, files))
            wrong += len(own)
            print("\n".join([f"{part}: {len(own) or 'no'} of {len(files)} files differ", *own]), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
