"""Rounds of damaged pages: each is a function of the format and its number, so a run continues where another stopped.

A feed may say about a damaged page that it is wrong. It may not raise an error, take a second of processor time, or
emit an event that the decoder refuses; and an estate learned from damaged pages must be one that is taken, or be
refused as any other file.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import process_time

import msgspec

from tests.tools.fuzz.damage import damaged
from tests.tools.fuzz.pages import ESTATE, headers_of, pages_of, pieces
from twin.estate import Estate, EstateError, load_estate
from twin.events import Decoder
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.estate_import import differences, estate_text, unverified
from twin.feeds.importing import describe_file
from twin.recordings.files import LinesChunk

INPUTS = 50  # of a round
MAX_SECONDS = 1.0  # of processor time for a page
NOON = 1_795_176_000_000_000  # microseconds since 1970


class TooSlow(BaseException):
    """A page takes too long; no feed catches it."""


@dataclass(slots=True)
class Failure:
    """An input that broke a rule."""

    name: str  # of the format
    round: int
    reason: str
    page: bytes  # the damaged one; of an error at the end of the round, all of them

    def __str__(self) -> str:
        return f"{self.name}, round {self.round}: {self.reason}\n{self.page!r}"


@dataclass(slots=True)
class Tally:
    """Numbers of the inputs of a format, and of what they led to."""

    inputs: int = 0
    refused: int = 0  # inputs with a complaint
    events: int = 0
    failures: int = 0
    slowest: float = 0.0  # seconds of processor time for one page
    seconds: float = 0.0  # of processor time in all

    def add(self, other: Tally) -> None:
        """Add those of another run."""
        self.inputs += other.inputs
        self.refused += other.refused
        self.events += other.events
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)
        self.seconds += other.seconds


@dataclass(slots=True)
class Fuzzer:
    """Plays rounds of one format.

    name: the format.
    folder: where its estate is written.
    """

    name: str
    folder: Path
    _estate: Estate = field(init=False)
    _decoder: Decoder = field(init=False)
    _pieces: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        path = self.folder / "estate.toml"
        path.write_text(ESTATE, encoding="utf-8")
        self._estate = load_estate(path)
        self._decoder = Decoder(self._estate)
        self._pieces = pieces()

    def play(self, number: int) -> tuple[Tally, list[Failure]]:
        """Return what became of the inputs of a round, and those that broke a rule.

        Args:
            number: number of the round; a third of them are of each kind.
        """
        began = process_time()
        rng = Random(f"{self.name} {number}")
        learns = number % 3 == 2
        stream = "" if number % 2 else "t/0/"  # a page may continue the one before
        intake = Intake(None if learns else self._estate)
        options = FeedOptions(
            qmgr="QM01", queue="ORDERS", slice_s=600.0, flows=rng.choice(("statistics", "accounting"))
        )
        tally, failures, lines, tried = Tally(), [], [], []
        feed = make_feed(self.name, intake, options)
        for index in range(INPUTS):
            page = damaged(rng, rng.choice(pages_of(self.name)), self._pieces)
            headers = headers_of(self.name, rng)
            tried.append(page)
            if number % 3 == 1:
                feed = make_feed(self.name, intake, options)
            complaints = intake.counts.total()
            started = process_time()
            try:
                with limited():
                    events = list(intake.sift(feed.take(Page(page, f"page {index}", NOON, headers, stream=stream))))
                    if number % 3 == 1 or index == INPUTS - 1:
                        events += intake.sift(feed.finish())
            except (Exception, TooSlow) as error:  # noqa: BLE001  (whatever it is, it is reported with its input)
                failures.append(Failure(self.name, number, f"{type(error).__name__}: {error}", page))
                feed = make_feed(self.name, intake, options)
                continue
            failures += [Failure(self.name, number, reason, page) for reason in _odd_looks(page)]
            tally.slowest = max(tally.slowest, process_time() - started)
            tally.refused += intake.counts.total() > complaints
            tally.events += len(events)
            lines += map(msgspec.json.encode, events)
        reason = _learned(intake, self._estate, self.folder) if learns else self._undecoded(lines)
        if reason:
            failures.append(Failure(self.name, number, reason, b"\n".join(tried)))
        failures += [Failure(self.name, number, f"complaint of two lines: {c}", b"") for c in _long(intake)]
        tally.inputs, tally.failures, tally.seconds = INPUTS, len(failures), process_time() - began
        return tally, failures

    def _undecoded(self, lines: list[bytes]) -> str:
        """Return what the decoder refuses; "": nothing."""
        if not lines:
            return ""
        rejects = LinesChunk(0, b"\n".join(lines)).decode(self._decoder).rejects
        return f"the decoder refuses {rejects[0]}" if rejects else ""


def _learned(intake: Intake, estate: Estate, folder: Path) -> str:
    """Return what is wrong with the estate of what was seen; "": nothing."""
    try:
        learned = estate_text(intake.facts)
        list(unverified(intake.facts))
        list(differences(intake.facts, estate))
        path = folder / "learned.toml"
        path.write_text(learned.text, encoding="utf-8")
        load_estate(path)
    except EstateError:
        return ""  # damaged names and sizes may be ones that no estate has
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return f"estate: {type(error).__name__}: {error}"
    return ""


def _odd_looks(page: bytes) -> list[str]:
    """Return what is wrong with the words for what a page looks like: an error, or none."""
    try:
        with limited():
            return [] if describe_file(page) else ["it looks like nothing"]
    except (Exception, TooSlow) as error:  # noqa: BLE001  (whatever it is, it is reported)
        return [f"describe_file: {type(error).__name__}: {error}"]


def _long(intake: Intake) -> list[str]:
    return [str(complaint) for complaint in intake.complaints if "\n" in str(complaint)]


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlow in the block once it has taken MAX_SECONDS of processor time."""

    def stop(_number: int, _frame: object) -> None:
        raise TooSlow(f"more than {MAX_SECONDS} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
