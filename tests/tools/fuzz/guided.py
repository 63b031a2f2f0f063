"""Inputs guided by coverage: `python -m tests.tools.fuzz.guided PARSER --inputs 1000000 --found FOLDER`, with Atheris.

`TARGETS` has every parser of what comes from outside, with inputs that it takes. A parser may refuse an input by its
own error and by no other, and takes at most a second. `--keep` chooses of what was found the short inputs that reach
most lines and writes them to corpus/, which the suite plays again. Atheris is installed by hand (`pip install
atheris`). It sees Python and not compiled kernels, so each event is held against the exact rules instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ATHERIS: Any = None
if __name__ == "__main__" and "--keep" not in sys.argv:
    import atheris as ATHERIS  # noqa: N812 -- the one name of a module that is not always there

with ATHERIS.instrument_imports(include=["twin", "streams"]) if ATHERIS else nullcontext():
    from streams.query.report_records import ReportError, read_record
    from tests.tools.fuzz.pages import ESTATE, pages_of
    from tests.tools.fuzz.rounds import NOON, limited
    from tests.twin.estate.test_estate_cfrm import POLICY
    from tests.twin.events.samples import PUT, assert_same, exactly
    from twin.base.errors import CutRecordingWarning, UsageError
    from twin.base.units import parse_size
    from twin.estate import EstateError, load_estate
    from twin.estate.planned import read_history
    from twin.events import Decoder
    from twin.events.convert import arrow_value, to_table
    from twin.events.rules import Rules
    from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
    from twin.feeds.estate_import import estate_text
    from twin.feeds.importing import describe_file
    from twin.feeds.spans import UnreadableSpansError, read_spans
    from twin.recordings.files import LinesChunk, open_recording
    from twin.records import read_alert_record, read_state_record

GET = {"time": PUT["time"], "qmgr": "QM02", "op": "GET", "queue": "ORDERS", "msgid": "a"}
CORPUS = Path(__file__).with_name("corpus")
MAX_BYTES = 4_096  # of an input
KEPT_BYTES = 8_000  # of all inputs of a parser in CORPUS
KEPT_INPUT_BYTES = 1_000  # of one of them

_EVENTS = (
    *map(msgspec.json.encode, (PUT, GET)),
    b'{"time":"2026-11-20T12:00:00.5Z","qmgr":"QM01","op":"PUT","queue":"ORDERS","length":5,"uow":"1","seq":7}',
    b'{"time":1795176000000000,"qmgr":"QM01","op":"MEASURE","store":"QSG1/APP1","measured":{"messages":3,"usage_pct":1.5}}',
    b'{"time":1795176000000000,"qmgr":"QM01","op":"ALTER","store":"QSG1/APP1","attributes":{"offld1_th":70,"size":"512M"}}',
)
_MQSC = b"""\
* objects of a queue-sharing group
DEFINE CFSTRUCT(APP1) CFLEVEL(5) OFFLOAD(SMDS) OFFLD1TH(70) OFFLD1SZ(32K) DSBLOCK(256K) DSEXPAND(YES) +
  DESCR('it''s one') REPLACE
DEFINE STGCLASS('REMOTE') PSID(04)
DEFINE QLOCAL(BASE) MAXDEPTH(10)
DEFINE QLOCAL(ORDERS) LIKE(BASE) QSGDISP(SHARED) CFSTRUCT(APP1) MAXDEPTH(5000)
DEFINE QLOCAL('LOCAL.A') STGCLASS(REMOTE)
ALTER QLOCAL(ORDERS) QSGDISP(SHARED) MAXMSGL(4194304)
DEFINE PSID(05) BUFFPOOL(1) EXPAND(USER)
"""
_IMPORTING = """\
schema = 1
[[import]]
{kind} = "{file}"
{more}[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "4G"
cf_level = 5
[queue_file."QM09/Q"]
max_size = "2T"
[queue_manager.QM09]
platform = "distributed"
"""
_STRUCTURE = b'{"type":"structure","size":1,"scm_max":2,"scm_used":0,"aug_fixed":0,"aug_dynamic":0}'
_REPORT = b'{"store":"CF01","source":"QSG1/APP1","reports":[{"tick":179517600,"passed":179517601,"values":%s}]}'
_REPORTS = (b'{"store":"CF01","caught_up":true}', _REPORT % b"null", _REPORT % _STRUCTURE)
_HISTORY = b'{"schema":1,"stores":{"QSG1/APP1":[]},"puts":{}}'
ODD = (
    *(b"", b"\xff", b"\0" * 10, b"9" * 5_000, b"a = " + b"9" * 5_000, b'"\xed\xa0\x80"', b'{"\xff": 1}'),
    *(b"[" * 3_000, b"a = " + b"[" * 3_000 + b"]" * 3_000, b'{"a":' * 3_000, b'{"time": 1, "qmgr": ' + b"[" * 3_000),
    *(b"(" * 3_000, b"DEFINE QLOCAL(" * 600),
)  # for every parser: nested deeper than a decoder follows, no UTF-8, numbers beyond what `int` reads


class Target(NamedTuple):
    """A parser. take: gives it an input and raises what the parser must not. seeds: inputs that it takes."""

    take: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]


class _Places:
    """A folder with an estate, for parsers that read files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.estate_path = self.write("estate.toml", ESTATE.encode())
        self.estate = load_estate(self.estate_path)
        self.decoder, self.rules = Decoder(self.estate), Rules(self.estate)

    def write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path


_temporary = tempfile.TemporaryDirectory(prefix="mqtwin-fuzz-")


@cache
def _places() -> _Places:
    return _Places(Path(_temporary.name))


def _check_line(error: Exception) -> None:
    assert "\n" not in str(error), str(error)


def _json(data: bytes) -> None:
    places = _places()
    assert_same(places.decoder.json([data]), exactly(places.rules, [data]))


def _ndjson(data: bytes) -> None:
    """Take lines; each that is not empty is an event or a dead letter."""
    decoded = _places().decoder.ndjson([data])
    assert len(decoded) + len(decoded.rejects) == sum(1 for line in data.split(b"\n") if line.strip(b" \t\r"))


def _arrow(data: bytes) -> None:
    """Take a stream between two sound ones, which it must not touch."""
    decoded = _places().decoder.arrow([_sound(), data, _sound()])
    assert (decoded.record == 0).sum() == (decoded.record == 2).sum() == 2
    assert all(reject.record == 1 for reject in decoded.rejects)


@cache
def _sound() -> bytes:
    return arrow_value(to_table([PUT, GET]))


def _spans(data: bytes) -> None:
    with suppress(UnreadableSpansError):
        read_spans(data)


def _record(data: bytes) -> None:
    with suppress(ReportError):
        read_record(data, _places().estate)


def _decoded(read: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Take a record of a topic, which `RecordGuard` would count."""

    def take(data: bytes) -> None:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            read(data)

    return take


def _estate(kind: str) -> Callable[[bytes], None]:
    """Take an estate, or a text that an estate imports."""

    def take(data: bytes) -> None:
        path = _places().write(f"{kind}.txt", data)
        if kind != "toml":
            more = 'queue_manager = "QM01"\n' if kind == "mqsc" else ""
            path = _places().write(f"{kind}.toml", _IMPORTING.format(kind=kind, file=path.name, more=more).encode())
        try:
            load_estate(path)
        except EstateError as error:
            _check_line(error)

    return take


def _history(data: bytes) -> None:
    with suppress(EstateError):
        read_history(_places().write("history.json", data))


def _size(data: bytes) -> None:
    with suppress(ValueError):
        assert parse_size(data.decode("utf-8", "replace")) >= 0


def _recording(suffix: str) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        warnings.simplefilter("ignore", CutRecordingWarning)
        try:
            for chunk in open_recording(_places().write(f"recording{suffix}", data)):
                chunk.decode(_places().decoder)
        except UsageError as error:
            _check_line(error)

    return take


def _feed(name: str) -> Callable[[bytes], None]:
    """Take a page: complaints at most, and no event that the decoder refuses."""

    def take(data: bytes) -> None:
        places = _places()
        intake = Intake(places.estate)
        options = FeedOptions(qmgr="QM01", queue="ORDERS", slice_s=600.0, flows="statistics")
        feed = make_feed(name, intake, options)
        events = [*intake.sift(feed.take(Page(data, "page", NOON))), *intake.sift(feed.finish())]
        assert describe_file(data)
        assert not any("\n" in str(complaint) for complaint in intake.complaints)
        if events:
            lines = b"\n".join(map(msgspec.json.encode, events))
            assert not LinesChunk(0, lines).decode(places.decoder).rejects
        learning = Intake(None)
        for _ in make_feed(name, learning, options).take(Page(data, "page", NOON)):
            pass
        estate_text(learning.facts)

    return take


def _record_seeds(topic: str) -> list[bytes]:
    from tests.tools.fuzz.records import TOPICS, samples

    return [value for name, value in samples() if name == getattr(TOPICS, topic)]


def _zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


TARGETS: dict[str, Target] = {
    "json": Target(_json, lambda: _EVENTS),
    "ndjson": Target(_ndjson, lambda: [*_EVENTS, b"\n".join(_EVENTS)]),
    "arrow": Target(_arrow, lambda: [_sound(), arrow_value(to_table([PUT]))]),
    "spans": Target(_spans, lambda: pages_of("otlp")),
    "reports": Target(_record, lambda: _REPORTS),
    "states": Target(_decoded(read_state_record), lambda: _record_seeds("state")),
    "alerts": Target(_decoded(read_alert_record), lambda: _record_seeds("alerts")),
    "toml": Target(_estate("toml"), lambda: [ESTATE.encode(), *map(str.encode, ESTATE.split("\n["))]),
    "mqsc": Target(_estate("mqsc"), lambda: [_MQSC, *_MQSC.splitlines(keepends=True)]),
    "cfrm": Target(_estate("cfrm"), lambda: [POLICY.encode()]),
    "history": Target(_history, lambda: [_HISTORY]),
    "size": Target(_size, lambda: [b"4G", b"512 MB", b"1.5T"]),
    "recording": Target(_recording(".ndjson"), lambda: [b"\n".join(_EVENTS)]),
    "recording-zstd": Target(_recording(".ndjson.zst"), lambda: [_zstd(b"\n".join(_EVENTS))]),
    "recording-arrow": Target(_recording(".arrow"), lambda: [_sound()]),
    **{name: Target(_feed(name), lambda name=name: pages_of(name)) for name in FORMATS},
}


def corpus_of(name: str) -> list[bytes]:
    """Return the kept inputs of a parser."""
    path = CORPUS / f"{name}.msgpack"
    return msgspec.msgpack.decode(path.read_bytes(), type=list[bytes]) if path.exists() else []


def play(name: str, data: bytes) -> None:
    """Give an input to a parser; raise what it must not raise, or TooSlow."""
    with limited():
        TARGETS[name].take(data)


def keep(name: str, folder: Path) -> int:
    """Write the shortest of the inputs in a folder that reach all lines, up to KEPT_BYTES; return their number."""
    inputs = sorted({path.read_bytes() for path in folder.iterdir()} | set(corpus_of(name)), key=lambda d: (len(d), d))
    seen: set[tuple[str, int]] = set()
    chosen: list[bytes] = []
    for data in inputs:
        if len(data) > KEPT_INPUT_BYTES or sum(map(len, chosen)) + len(data) > KEPT_BYTES:
            break
        lines = set(_lines(name, data))
        if not lines <= seen:
            seen |= lines
            chosen.append(data)
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{name}.msgpack").write_bytes(msgspec.msgpack.encode(chosen))
    return len(chosen)


def _lines(name: str, data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the lines of the program that an input reaches."""
    reached: set[tuple[str, int]] = set()

    def trace(frame: Any, event: str, _: object) -> Any:
        if "/twin/" not in frame.f_code.co_filename and "/streams/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        TARGETS[name].take(data)
    finally:
        sys.settrace(None)
    return iter(reached)


def main() -> None:
    """Fuzz a parser; Atheris ends the process, with status 77 or an error where an input broke a rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz.guided", description=__doc__)
    parser.add_argument("name", choices=TARGETS, metavar="PARSER", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=0, help="0: until all inputs are tried")
    parser.add_argument("--found", type=Path, required=True, help="folder of inputs that reach other code")
    parser.add_argument("--keep", action="store_true", help="choose of them for corpus/, and try none")
    options = parser.parse_args()
    if options.keep:
        print(f"{options.name}: {keep(options.name, options.found)} inputs kept")
        return
    options.found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate([*TARGETS[options.name].seeds(), *corpus_of(options.name), *ODD]):
        (options.found / f"seed-{number}").write_bytes(seed)
    flags = [f"-runs={options.inputs}", f"-max_total_time={options.seconds}", f"-max_len={MAX_BYTES}", "-timeout=20"]
    flags += ["-seed=1", "-print_final_stats=1", f"-artifact_prefix={options.found.parent}/{options.name}-"]
    ATHERIS.Setup([sys.argv[0], *flags, str(options.found)], lambda data: play(options.name, data))
    ATHERIS.Fuzz()


if __name__ == "__main__":
    main()
