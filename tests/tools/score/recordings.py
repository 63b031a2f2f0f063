"""Cases as recordings on disk: drawn and simulated once, found again as long as the generator's code is the same."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

import twin.simulation
from tests.tools.score import case_estate, cases, scenarios
from tests.tools.score.cases import Split, draw_case
from twin.estate import load_estate
from twin.recordings.files import RecordingWriter
from twin.simulation.scenario import StoreScenario, play
from twin.simulation.system import Measuring

RECORDINGS = Path(__file__).resolve().parents[3] / "build" / "score" / "recordings"
_HASH_BYTES = 6
_DRAWN_BY = (cases.__file__, case_estate.__file__, *sorted(map(str, Path(scenarios.__file__).parent.glob("*.py"))))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A case and where it is kept. class_: steady or hard; stem: stem of its files, a path without suffix."""

    number: int
    split: Split
    scenario: str
    class_: str
    store: str
    filler: str
    story: str
    stem: str

    @property
    def recording(self) -> Path:
        """The file of its events."""
        return Path(f"{self.stem}.arrow")

    @property
    def estate(self) -> Path:
        """The file of its estate, TOML."""
        return Path(f"{self.stem}.toml")

    @property
    def hard(self) -> bool:
        """True if a straight line fails on its class."""
        return self.class_ == "hard"

    @property
    def name(self) -> str:
        """Its name in tables: set, number, scenario."""
        return f"{self.split}-{self.number:04}-{self.scenario}"


def code_hash() -> str:
    """Return the hash of the generator: recordings of another one are not the same cases."""
    return hash_of([*sorted(Path(twin.simulation.__file__).parent.rglob("*.py")), *map(Path, _DRAWN_BY)])


def hash_of(files: Iterable[Path]) -> str:
    """Return the hash of names and contents of files."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def recordings_folder(root: Path = RECORDINGS, *, fresh: bool) -> Path:
    """The folder for recordings of this generator, emptied where `fresh`; those of another generator are removed.

    What is not named as a generator is left alone.
    """
    folder = root / code_hash()
    for other in root.glob("*") if root.is_dir() else ():
        if re.fullmatch(f"[0-9a-f]{{{2 * _HASH_BYTES}}}", other.name) and (fresh or other != folder):
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def recorded(number: int, split: Split, folder: Path) -> Recorded:
    """The case of that number as a recording; simulated if it is not there yet."""
    note = folder / f"{split}-{number:04}.json"
    if not note.is_file():
        case = draw_case(number, split)
        files = Recorded(
            number=number,
            split=split,
            scenario=case.scenario.name,
            class_=case.class_,
            store=case.store,
            filler=case.filler,
            story=case.story,
            stem=str(note.with_suffix("")),
        )
        files.estate.write_text(case.estate_text, encoding="utf-8")
        with RecordingWriter(files.recording) as writer:
            for table in case.play():
                writer.write(table)
        note.write_bytes(msgspec.json.encode(files))  # last: what has a note is whole
    return read_note(note)


def write_case(case: Recorded, text: str, scenario: StoreScenario, measuring: Measuring | None = None) -> Recorded:
    """Write the estate and the recording of a case, simulated with its number as seed; return the case.

    Args:
        case: the case.
        text: its estate, TOML.
        scenario: what is played.
        measuring: what is measured meanwhile; None: nothing.
    """
    case.estate.write_text(text, encoding="utf-8")
    with RecordingWriter(case.recording) as writer:
        for table in play(scenario, load_estate(case.estate), seed=case.number, measuring=measuring):
            writer.write(table)
    return case


def read_note(note: Path) -> Recorded:
    """Return the case of a note, wherever its folder has been moved."""
    return replace(msgspec.json.decode(note.read_bytes(), type=Recorded), stem=str(note.with_suffix("")))
