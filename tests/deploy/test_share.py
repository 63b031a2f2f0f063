"""A recording under pseudonyms: no name of its site is in it, and it replays to the same alerts but for names."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from deploy.cli import main
from kernels.clock import TICK
from tests.support.traffic import BAD_LINES, lines_of, traffic, write_estate, write_lines
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.attributes import SECTIONS
from twin.estate.model import (
    CouplingFacility,
    PageSet,
    QueueFile,
    QueueManager,
    Smds,
    Structure,
    UniformCluster,
)
from twin.estate.planned import PastPuts, PastRise, Plan, StoreHistory, history_text
from twin.events import fields
from twin.events.convert import json_lines
from twin.events.fields import FIELD, FIELDS, Kind
from twin.forecast import levels, outlook
from twin.forecast.outlook import seed_of
from twin.playback.replays import replay
from twin.recordings import share as sharing
from twin.recordings.pseudonyms import KEPT_WORDS, NAMES, WEEK, Pseudonyms, moved_plan
from twin.recordings.share import HANDLED, UNCHANGED, Shared, share
from twin.simulation import demo_estate, make_scenario, scenarios, simulate

KEY = bytes(range(32))
MINUTES = 16
START = datetime(2026, 11, 20, 0, 0, tzinfo=UTC)
JOINED = Path(__file__).parents[3] / "shared" / "fixtures" / "joined"
needs_fixtures = pytest.mark.skipif(not JOINED.exists(), reason="no recordings at ../shared/fixtures/joined")

ESTATE = """
schema = 1
history = "history.json"
[[import]]
cfrm = "policy.txt"
[[import]]
mqsc = "qsg1.mqsc"
queue_sharing_group = "PAYG"
[site]
name = "Zurich Hardau"
zone = "Europe/Zurich"
[coupling_facility.CFHARD]
size = "8G"
[queue_sharing_group.PAYG]
queue_managers = ["PAY1", "PAY2"]
[smds."PAYG/LEDGER/PAY1"]
size = "64M"
secondary = "32M"
max_size = "96M"
[page_set."PAY1/4"]
pages = 20000
[storage_class."PAY1/SLOW"]
page_set = 4
[queue."PAY1/BOOKINGS.LOCAL"]
storage_class = "SLOW"
max_depth = 2000
[host.hardau-7]
cores = 8
[queue_manager.FRONT]
platform = "distributed"
host = "hardau-7"
[queue_file."FRONT/ACCOUNTS"]
max_size = "40M"
[uniform_cluster.HARDAUCL]
queue_managers = ["FRONT"]
messages_per_second = 1000
[[planned]]
store = "PAYG/LEDGER"
id = "month end of ACME"
queue = "LEDGER.IN"
rrule = "FREQ=MONTHLY;BYMONTHDAY=20;BYHOUR=2;BYMINUTE=30;UNTIL=20270101T000000Z"
duration_s = 3600
messages = 9000
note = "call Hans Muster"
"""
POLICY = """
DATA TYPE(CFRM)
DEFINE POLICY NAME(HARDPOL)
  CF NAME(CFHARD) DUMPSPACE(64M)
  STRUCTURE NAME(PAYGLEDGER) SIZE(64M) INITSIZE(64M) FULLTHRESHOLD(70) PREFLIST(CFHARD)
  STRUCTURE NAME(CICSLOGS) SIZE(32M) PREFLIST(CFHARD)
"""
MQSC = """
DEFINE CFSTRUCT(LEDGER) CFLEVEL(5) OFFLOAD(SMDS) DSGROUP('PROD.SMDS.*.LEDGER')
DEFINE QLOCAL(LEDGER.IN) QSGDISP(SHARED) CFSTRUCT(LEDGER) MAXDEPTH(90000)
DEFINE QLOCAL(LEDGER.OUT) QSGDISP(SHARED) CFSTRUCT(LEDGER)
DEFINE QALIAS(LEDGER.ALIAS) TARGET(LEDGER.IN)
"""
SECRETS = ("Zurich Hardau", "Hans Muster", "ACME", "PROD.SMDS", "msg-", "unit-", "SLOW")


def _site(folder: Path) -> tuple[Path, Path]:
    """Return recording and estate of a site with stores of all kinds, and every field of an event."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = round(START.timestamp()) * 1_000_000
    rise = PastRise(
        began=begin - WEEK, ended=begin - WEEK + 60_000_000, low=0.1, top=0.5, usage=0.5, refused=0, puts=9, stayed=5
    )
    history = {"PAYG/LEDGER": StoreHistory((rise,), PastPuts(until=begin - WEEK, counts=(1, 2, 3)))}
    for name, text in (("policy.txt", POLICY), ("qsg1.mqsc", MQSC), ("estate.toml", ESTATE)):
        (folder / name).write_text(text)
    (folder / "history.json").write_bytes(history_text(history))
    events: list[dict[str, Any]] = []
    for minute in range(MINUTES):
        time = START + timedelta(minutes=minute)
        common = {"time": time.isoformat(), "qmgr": "PAY1"}
        events += [
            {**common, "op": "PUT", "queue": "LEDGER.ALIAS", "seq": minute, "length": 900, "count": 500, "priority": 3},
            {**common, "op": "PUT", "queue": "LEDGER.OUT", "length": 70_000, "msgid": f"msg-{minute}"},
            {**common, "op": "PUT", "queue": "LEDGER.IN", "length": 80, "uow": f"unit-{minute}", "expiry": 90.5},
            {**common, "op": "COMMIT", "queue": "LEDGER.IN", "uow": f"unit-{minute}", "persistent": True},
            {**common, "op": "PUT", "queue": "BOOKINGS.LOCAL", "length": 3000, "count": 60},
            {**common, "op": "HEARTBEAT"},
            {**common, "qmgr": "FRONT", "op": "PUT", "queue": "ACCOUNTS", "length": 30_000, "count": 12},
            {**common, "op": "PUT", "queue": "NOT.KNOWN", "length": 1, "colour": "red"},
        ]  # fmt: skip
        if minute % 10 == 5:
            queue = {
                "name": "LEDGER.IN",
                "depth": 400 * minute,
                "getters": 0,
                "last_put": time.isoformat(),
                "note": "Hans",
            }
            content = {"messages": 500 * minute, "smds": {"PAY1": {"blocks_total": 256, "blocks_used": minute}},
                       "queues": [queue], "asked": ["PAY1"], "remark": "Hans Muster"}  # fmt: skip
            events.append({**common, "op": "MEASURE", "store": "PAYG/LEDGER", "measured": content})
    common = {"time": (START + timedelta(minutes=MINUTES)).isoformat(), "qmgr": "PAY2", "store": "PAYG/LEDGER"}
    plan = {"id": "ACME night", "queue": "LEDGER.IN", "from": "2026-11-20T04:00:00+01:00",
            "until": "2026-11-20T05:00:00+01:00", "messages": 20000, "getters": "away",
            "note": "Hans Muster"}  # fmt: skip
    events += [
        {**common, "op": "ALTER", "attributes": {"offld1_th": 60, "size": "80M"}},
        {**common, "op": "ALTER", "attributes": {"offld1_th": "Hans Muster"}},
        {**common, "op": "PLAN", "plan": plan},
        {**common, "op": "PLAN", "plan": {"id": "month end of ACME", "cancelled": True}},
        {**common, "op": "NOTE", "qmgr": "Hans Muster", "attributes": {"opened": begin, "word": "useless"}},
        {**common, "op": "RESTART"},
    ]
    return write_lines(folder / "night.ndjson", map(msgspec.json.encode, events)), folder / "estate.toml"


def _traffic(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return write_lines(folder / "traffic.ndjson", [*lines_of(traffic(3000)), *BAD_LINES]), write_estate(folder)


def _joined(name: str) -> tuple[Path, Path]:
    return JOINED / f"{name}.ndjson", JOINED / ("counts.toml" if name == "counts" else "estate.toml")


def _texts_of(folder: Path) -> str:
    """Return all that is in the files of a folder: texts, and the bytes and rows of recordings, not compressed."""
    texts = []
    for path in sorted(folder.iterdir()):
        texts.append(path.read_bytes().decode("latin-1"))
        if path.suffix == ".arrow":
            table = pa.ipc.open_file(path).read_all()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            texts += [sink.getvalue().to_pybytes().decode("latin-1"), *json_lines(table).to_pylist()]
    return "\n".join(texts)


def _named(shared: Shared, text: str, shift: int) -> str:
    """Return a text of the shared recording with the names and days of the original one."""
    for (_, name), pseudonym in sorted(shared.table.items(), key=lambda item: -len(item[1])):
        text = text.replace(pseudonym, name)

    def earlier(match: re.Match[str]) -> str:
        return f"{datetime.fromisoformat(match[0]) - timedelta(microseconds=shift):%Y-%m-%d}"

    text = re.sub(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", earlier, text)
    return re.sub('(?<=/)[0-9]{16}(?=[/"])', lambda match: str(int(match[0]) - shift), text)  # of ids


def _records(texts: Iterable[str]) -> list[Any]:
    """Return records without the order that names make, and without briefs, which are cut where names end too late."""
    return sorted((_unordered(msgspec.json.decode(text)) for text in texts), key=repr)


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unordered(own) for name, own in sorted(value.items()) if name != "brief"}
    if isinstance(value, list):
        own = [_unordered(part) for part in value]
        if all(isinstance(part, dict) and "share" in part for part in own):  # equal shares are in the order of names
            return sorted(own, key=lambda part: (-part["share"], repr(part)))
        return sorted(own) if all(isinstance(part, str) for part in own) else own
    return value


def _check(recording: Path, estate_file: Path, folder: Path) -> Shared:
    """Assert that a recording is shared as this page says; return what was shared."""
    estate = load_estate(estate_file)
    shared = share(recording, estate, folder, KEY)
    original = replay(recording, replace(estate, site=replace(estate.site, name="")))  # which is in each record
    shift, stores = shared.shift, {pseudonym: name for (_, name), pseudonym in shared.table.items()}

    def seed_of_original(store: str, tick: int) -> int:
        return seed_of("/".join(stores.get(part, part) for part in store.split("/")), tick - shift // TICK)

    with pytest.MonkeyPatch.context() as same_draws:  # futures are drawn by the name of the store and the time
        for module in (outlook, levels):
            same_draws.setattr(module, "seed_of", seed_of_original)
        copy = replay(folder / sharing.RECORDING, folder / "estate.toml")
    assert (copy.events, copy.dead_letters) == (original.events, 0)
    assert shared.left_out >= original.dead_letters
    assert shift
    assert shift % WEEK == 0
    ours = [_named(shared, alert.record().decode(), shift) for alert in copy.alerts]
    assert _records(ours) == _records(alert.record().decode() for alert in original.alerts)
    states = {_named(shared, name, 0): state for name, state in copy.states.items()}
    assert states.keys() == original.states.keys()
    for name, state in states.items():
        text = _named(shared, msgspec.json.encode(state).decode(), shift)
        assert _records([text]) == _records([msgspec.json.encode(original.states[name]).decode()])
    text = _texts_of(folder)
    names = {name for _, name in shared.table if len(name) >= 4}
    assert [name for name in sorted(names) if name in text] == []
    assert sorted(path.name for path in folder.iterdir()) == sorted(shared.files)
    return shared


def test_a_site_with_all_kinds_of_stores_replays_to_the_same_alerts_but_for_names(tmp_path: Path) -> None:
    recording, estate = _site(tmp_path / "site")
    shared = _check(recording, estate, tmp_path / "shared")
    text = _texts_of(tmp_path / "shared")
    assert [secret for secret in SECRETS if secret in text] == []
    assert shared.zone == "Europe/Zurich"
    assert {kind for kind, _ in shared.table} >= {"queue", "structure", "group", "policy", "host", "cluster", "plan"}


def test_a_traffic_with_dead_letters_replays_to_the_same_alerts_but_for_names(tmp_path: Path) -> None:
    recording, estate = _traffic(tmp_path / "site")
    shared = _check(recording, estate, tmp_path / "shared")
    assert shared.left_out == len(BAD_LINES)
    assert shared.ids > 0


@needs_fixtures
@pytest.mark.parametrize("name", ["alter", "counts", "elements", "smds"])
def test_a_small_site_replays_to_the_same_alerts_but_for_names(name: str, tmp_path: Path) -> None:
    _check(*_joined(name), tmp_path / "shared")


@pytest.mark.nightly
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_replays_to_the_same_alerts_but_for_names(name: str, tmp_path: Path) -> None:
    recording = tmp_path / "night.arrow"
    source = _estate_of(name, tmp_path)
    simulate(make_scenario(name), source, recording, seed=3)
    _check(recording, source, tmp_path / "shared")


def _estate_of(name: str, folder: Path) -> Path:
    """Return an estate that has the stores of a scenario."""
    from twin.simulation import site

    ours = folder / "scm.toml", folder / "others.toml"
    for own, text in zip(ours, (ESTATE_OF_SCM, ESTATE_OF_OTHERS), strict=True):
        own.write_text(text)
    for own in (*sorted(Path(site.__file__).parent.glob("*.toml")), *ours):
        try:
            make_scenario(name).cast(load_estate(own), np.random.default_rng(0))
        except UsageError:
            continue
        return own
    raise AssertionError(name)


ESTATE_OF_SCM = """
schema = 1
[coupling_facility.CFHARD]
size = "4G"
scm = "24M"
[queue_sharing_group.PAYG]
queue_managers = ["PAY1", "PAY2"]
""" + "".join(
    f"""
[structure."PAYG/{name}"]
coupling_facility = "CFHARD"
size = "16M"
scm_max_size = "24M"
offld1_sz = "64K"
offld2_sz = "64K"
offld3_sz = "64K"
[queue."PAYG/{name}.IN"]
structure = "{name}"
[queue."PAYG/{name}.BACK"]
structure = "{name}"
"""
    for name in ("LEDGER", "CARDS")
)

ESTATE_OF_OTHERS = """
schema = 1
[page_set."PAY1/4"]
pages = 20000
expand = "NONE"
[queue_manager.PAY1]
[storage_class."PAY1/SLOW"]
page_set = 4
[queue."PAY1/BOOKINGS"]
storage_class = "SLOW"
[host.hardau]
cores = 4
[queue_manager.FRONT]
platform = "distributed"
host = "hardau"
[queue_file."FRONT/ACCOUNTS"]
max_size = "400M"
[uniform_cluster.HARDAUCL]
queue_managers = ["FRONT"]
messages_per_second = 1000
"""


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_every_field_of_an_event_has_a_treatment_and_a_text_is_never_kept() -> None:
    assert HANDLED.keys() == FIELD.keys()
    texts = {field.name for field in FIELDS if field.kind in (Kind.STRING, Kind.OBJECT)}
    assert {name for name in texts if HANDLED[name] == UNCHANGED} == {"op"}
    assert HANDLED["time"] != UNCHANGED


def test_a_field_without_a_treatment_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "HANDLED", {name: own for name, own in HANDLED.items() if name != "priority"})
    recording, estate = _site(tmp_path / "site")
    share(recording, load_estate(estate), tmp_path / "shared", KEY)
    table = pa.ipc.open_file(tmp_path / "shared" / sharing.RECORDING).read_all()
    assert table.column("priority").null_count == table.num_rows


def _has_text(hint: Any) -> bool:
    """Return True if a value of a type may have a text in it."""
    if get_origin(hint) in (Union, types.UnionType) or get_args(hint):
        return any(_has_text(part) for part in get_args(hint))
    return hint is str or isinstance(hint, str)


@pytest.mark.parametrize(
    "config", [CouplingFacility, PageSet, QueueFile, QueueManager, Smds, Structure, UniformCluster]
)
def test_an_attribute_of_the_estate_with_texts_is_a_name_or_a_word_of_mq(config: type) -> None:
    hints = get_type_hints(config)
    texts = {name for name in config.rows if _has_text(hints[name])}  # type: ignore[attr-defined]
    assert texts <= {*NAMES, *KEPT_WORDS}


def test_a_section_of_the_estate_is_one_that_the_writer_knows() -> None:
    assert set(SECTIONS) == {
        *("coupling_facility", "queue_sharing_group", "queue_manager", "host", "structure", "other_structure", "smds"),
        *("page_set", "storage_class", "queue", "queue_file", "uniform_cluster"),
    }
    assert {own.name for own in Estate.__dataclass_fields__.values() if own.init} == {
        *("source", "stores", "queue_managers", "routes", "max_depths", "warnings", "hosts", "history", "site"),
        *("runbook", "planned"),
    }


def test_a_text_of_a_measurement_is_a_name_or_a_time() -> None:
    assert {name for name, hint in get_type_hints(fields.Measured).items() if _has_text(hint)} <= {"smds", "asked"}
    assert {name for name, hint in get_type_hints(fields.QueueMeasured).items() if _has_text(hint)} == {
        *("name", "last_get", "last_put")
    }


def test_a_plan_is_moved_with_all_that_it_announces_and_without_its_note() -> None:
    plan = Plan(id="a", queue="b", start=5, end=9, rrule="", duration_s=1.0, messages=2, length=3, puts_per_s=4.0,
                away=True, allowed_pct=5.0, note="Hans")  # fmt: skip
    moved = moved_plan(plan, Pseudonyms(KEY), WEEK)
    changed = {name for name in Plan.__struct_fields__ if getattr(moved, name) != getattr(plan, name)}
    assert changed == {"id", "queue", "start", "end", "note"}
    assert moved.note == ""


# --- names and times --------------------------------------------------------------------------------------------------


def test_a_key_gives_the_same_pseudonyms_again_and_another_key_others() -> None:
    first, again, other = (Pseudonyms(key).replacement("queue", "ORDERS") for key in (KEY, KEY, KEY[::-1]))
    assert first == again != other
    assert re.fullmatch("QUEUE[.][A-Z2-7]{8}", first)


def test_two_names_never_have_one_pseudonym() -> None:
    names = Pseudonyms(KEY)
    assert len({names.replacement("queue manager", f"QM{number:02d}") for number in range(500)}) == 500


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(UsageError, match="a key of 4 bytes; expected: 16 or more"):
        Pseudonyms(b"abcd")


def test_a_folder_that_has_something_is_refused_because_it_would_be_given_away(tmp_path: Path) -> None:
    recording, estate = _site(tmp_path)
    with pytest.raises(UsageError, match="has files, which would be given away too; expected: a new or an empty"):
        share(recording, load_estate(estate), tmp_path, KEY)


def test_a_recording_of_another_estate_is_refused(tmp_path: Path) -> None:
    recording, _ = _site(tmp_path / "site")
    with pytest.raises(UsageError, match=r"has no event of .*; expected: the estate of the recording"):
        share(recording, demo_estate(), tmp_path / "shared", KEY)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_what_is_shared_and_how_to_ask_for_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, _ = _site(tmp_path / "site")
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    words = ["--key-file", str(tmp_path / "key"), "--names", str(tmp_path / "names.json")]
    assert main(["share", str(recording), "-o", str(tmp_path / "shared"), *words]) == 0
    printed = capsys.readouterr().out
    assert " events of 4 stores over 0.3 h, in the zone Europe/Zurich, with 32 ids; 17 events that" in printed
    assert "to ask for help, send the folder with the command that you ran" in printed
    names = msgspec.json.decode((tmp_path / "names.json").read_bytes())
    assert Pseudonyms(KEY).replacement("queue", "LEDGER.IN") in names
    assert "LEDGER.IN" in names.values()


def test_a_key_file_that_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording, _ = _site(tmp_path / "site")
    words = ["share", str(recording), "-o", str(tmp_path / "shared"), "--key-file", str(tmp_path / "none")]
    assert main(words) == 2
    assert "cannot be read: No such file or directory; expected: a file of 16" in capsys.readouterr().err
