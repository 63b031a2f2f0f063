"""The package as a library: names, version, paths and names in place of objects, alerts as a table."""

import inspect
import json
import pickle
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pyarrow as pa
import pytest

import mqtwin
import mqtwin.feeds
import mqtwin.simulation
import mqtwin.testing
import twin
import twin.testing
from tests.support.twin_driver import PageSetDriver
from twin.alerts.episodes import SEVERITIES
from twin.base.conditions import CLEARED, OPENED, PAGE, UPDATED, WATCH
from twin.base.units import event_us
from twin.playback.replays import alert_table
from twin.records import STATES, StatesByKind
from twin.simulation import demo_estate_text
from twin.testing import Driver

WITH_ESTATE = {"find_plans", "Decoder", "Timeline", "at_moment", "commission", "open_store", "replay", "report"}
WITH_ESTATE |= {"simulate", "tune"}


def test_the_version_is_that_of_the_package() -> None:
    assert twin.__version__.count(".") == 2
    assert "__version__" in dir(twin)


def test_mqtwin_has_the_names_of_twin_and_the_same_objects() -> None:
    assert mqtwin.__version__ == twin.__version__
    assert mqtwin.__all__ == twin.__all__
    assert all(getattr(mqtwin, name) is getattr(twin, name) for name in twin.__all__)
    assert set(twin.__all__) <= set(dir(mqtwin))
    assert mqtwin.testing.__all__ == twin.testing.__all__
    assert all(getattr(mqtwin.testing, name) is getattr(twin.testing, name) for name in twin.testing.__all__)
    with pytest.raises(AttributeError, match="module 'mqtwin' has no attribute 'replays'"):
        mqtwin.replays  # noqa: B018


def test_what_was_pickled_under_the_names_of_twin_opens() -> None:
    estate = mqtwin.demo_estate()
    assert type(estate).__module__.startswith("twin.")
    assert pickle.loads(pickle.dumps(estate)) == twin.demo_estate()


def test_scenarios_are_listed_by_name_with_a_sentence() -> None:
    assert {"getter-outage", "burst"} <= twin.scenarios().keys()
    assert all(sentence.endswith(".") for sentence in twin.scenarios().values())


def test_a_scenario_of_a_similar_name_is_suggested() -> None:
    with pytest.raises(twin.UsageError, match=r"no scenario getter_outage; did you mean getter-outage\?$"):
        twin.make_scenario("getter_outage")
    with pytest.raises(twin.UsageError, match=r"no scenario xyz; expected: .*getter-outage"):
        twin.make_scenario("xyz")


@pytest.mark.nightly
def test_a_scenario_is_played_by_name_on_an_estate_by_path(tmp_path: Path) -> None:
    path = tmp_path / "estate.toml"
    path.write_text(demo_estate_text(), encoding="utf-8")
    named = twin.simulate("burst", str(path), tmp_path / "named.arrow", seed=3)
    by_object = twin.simulate(twin.make_scenario("burst"), twin.demo_estate(), tmp_path / "made.arrow", seed=3)
    assert named.stores == by_object.stores
    assert (tmp_path / "named.arrow").read_bytes() == (tmp_path / "made.arrow").read_bytes()
    with pytest.raises(twin.UsageError, match="did you mean burst"):
        twin.simulate("bursts", path, tmp_path / "none.arrow")


@pytest.mark.parametrize("name", sorted(WITH_ESTATE))
def test_an_estate_may_be_given_as_its_file(name: str) -> None:
    declared = inspect.signature(getattr(twin, name)).parameters["estate"].annotation
    assert set(declared.split(" | ")) == {"Estate", "str", "Path"}


def test_every_public_function_with_an_estate_is_among_them() -> None:
    functions = {name: getattr(twin, name) for name in twin.__all__ if not name.endswith("Error")}
    taking = {name for name, value in functions.items() if "estate" in inspect.signature(value).parameters}
    assert taking == WITH_ESTATE


def test_a_store_at_a_moment_is_the_same_by_path_and_by_object(tmp_path: Path) -> None:
    path, recording = tmp_path / "estate.toml", tmp_path / "short.ndjson"
    path.write_text(demo_estate_text(), encoding="utf-8")
    put = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 900}
    lines = [json.dumps({"time": f"2026-11-20T12:00:{second:02}Z", **put}) for second in range(9)]
    recording.write_text("\n".join(lines), encoding="utf-8")
    moments = [
        twin.at_moment(recording, estate, "QSG1/APP1", "2026-11-20T12:00:04Z")
        for estate in (str(path), path, twin.demo_estate())
    ]
    assert [moment.twin.state().messages for moment in moments] == [5, 5, 5]
    assert [moment.estate.stores.keys() for moment in moments[:2]] == [moments[2].estate.stores.keys()] * 2
    assert twin.open_store(path, "QSG1/APP1").name == "QSG1/APP1"
    assert len(twin.Decoder(path).json([lines[0].encode()])) == 1


@pytest.mark.parametrize("time", ["2026-11-20T13:00:04+01:00", datetime(2026, 11, 20, 12, 0, 4, tzinfo=UTC)])
def test_a_time_may_be_text_microseconds_or_a_datetime(tmp_path: Path, time: str | datetime) -> None:
    recording, estate = tmp_path / "short.ndjson", twin.demo_estate()
    put = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 900}
    lines = [json.dumps({"time": f"2026-11-20T12:00:{second:02}Z", **put}) for second in range(9)]
    recording.write_text("\n".join(lines), encoding="utf-8")
    assert twin.at_moment(recording, estate, "QSG1/APP1", time).twin.state().messages == 5
    timeline = twin.Timeline(recording, estate)
    at_time = timeline.twin_at("QSG1/APP1", time)
    assert at_time is not None and at_time.state().messages == 5
    assert twin.report(recording, estate, since=time).since == "2026-11-20T12:00:04.000000Z"
    driver = Driver(estate)
    driver.time = time
    assert driver.time == Driver(estate, start=time).time == 1_795_176_004_000_000
    driver.send({"time": time, **put})
    assert driver.state("QSG1/APP1").messages == 1
    assert twin.make_scenario("burst", start=time).start == 1_795_176_004_000_000


def test_a_datetime_needs_a_zone(tmp_path: Path) -> None:
    recording, estate, time = tmp_path / "short.ndjson", twin.demo_estate(), datetime(2026, 11, 20, 12)  # noqa: DTZ001
    put = {"time": "2026-11-20T12:00:00Z", "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 900}
    recording.write_text(json.dumps(put), encoding="utf-8")
    timeline = twin.Timeline(recording, estate)
    for call in (
        lambda: twin.at_moment(recording, estate, "QSG1/APP1", time),
        lambda: timeline.twin_at("QSG1/APP1", time),
        lambda: timeline.states(time),
        lambda: twin.report(recording, estate, until=time),
        lambda: Driver(estate, start=time),
        lambda: setattr(Driver(estate), "time", time),
        lambda: twin.make_scenario("burst", start=time),
        lambda: twin.Replayed(states={"QSG1/APP1": Driver(estate).state("QSG1/APP1")}).paged_before("QSG1/APP1", time),
    ):
        with pytest.raises(twin.UsageError, match="has no zone; expected: a datetime with one"):
            call()


def test_a_store_that_the_estate_lacks_is_named(tmp_path: Path) -> None:
    recording, estate = tmp_path / "short.ndjson", twin.demo_estate()
    put = {"time": "2026-11-20T12:00:00Z", "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 900}
    recording.write_text(json.dumps(put), encoding="utf-8")
    timeline = twin.Timeline(recording, estate)
    for call in (
        lambda: twin.open_store(estate, "QSG1/APP9"),
        lambda: twin.at_moment(recording, estate, "QSG1/APP9"),
        lambda: timeline.twin_at("QSG1/APP9", timeline.times[0]),
        lambda: twin.hindsight(timeline, "QSG1/APP9", timeline.times[0], {"size": "2G"}),
    ):
        with pytest.raises(twin.UsageError, match="QSG1/APP9: the estate has no such store; did you mean QSG1/APP"):
            call()


def public_classes() -> dict[str, type]:
    """Return the classes that users make, get or extend; records have a text below each field instead."""
    classes: dict[str, type] = {}
    for module in (twin, twin.testing, mqtwin.simulation, mqtwin.feeds):
        for value in (getattr(module, name) for name in module.__all__):
            words = re.findall(r"\w+", str(value.__annotations__["return"])) if inspect.isfunction(value) else []
            for own in (value, *(value.__globals__.get(word) for word in words)):
                if inspect.isclass(own) and own.__module__.startswith("twin."):
                    classes[f"{own.__module__}.{own.__name__}"] = own
    return classes


PUBLIC = public_classes()


def test_what_public_functions_return_is_among_the_public_classes() -> None:
    names = {own.__name__ for own in PUBLIC.values()}
    assert {"Advice", "Answer", "Driver", "Moment", "Outcome", "Proven", "Replayed", "Site"} <= names


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_classes_document_their_fields(name: str) -> None:
    own = PUBLIC[name]
    fields = getattr(own, "__struct_fields__", None) or tuple(getattr(own, "__dataclass_fields__", ()))
    if not fields and "__init__" in vars(own):
        fields = tuple(re.findall(r"self\.([a-z]\w*)(?:: [^=\n]+)? = ", inspect.getsource(vars(own)["__init__"])))
    documented: set[str] = set()
    for base in own.__mro__:
        section = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2]
        lines = [line.strip().partition(":")[0] for line in section.splitlines() if line.startswith("    ")]
        documented |= {part.strip() for line in lines for part in line.split(",")}
    assert {field for field in fields if not field.startswith("_")} - documented == set()


def test_states_have_the_type_of_their_kind() -> None:
    driver, replayed = Driver(twin.demo_estate()), twin.Replayed()
    driver.put("ORDERS", length=2048)
    replayed.states.update(driver.states())
    kinds = {kind: getattr(StatesByKind, kind) for kind in STATES}
    assert {kind: get_type_hints(own)["return"] for kind, own in kinds.items()} == STATES
    for source in (driver, replayed):
        assert source.structure("QSG1/APP1").ents_used == 1
        for kind in kinds.keys() - {"structure"}:
            with pytest.raises(
                twin.UsageError, match=r'^QSG1/APP1 is a structure; expected: structure\("QSG1/APP1"\)$'
            ):
                getattr(source, kind)("QSG1/APP1")
        with pytest.raises(twin.UsageError, match=r"QSG1/APP9.*did you mean QSG1/APP"):
            source.structure("QSG1/APP9")


def test_words_of_alerts_are_literals_of_their_constants() -> None:
    hints = get_type_hints(twin.Alert)
    assert get_args(hints["severity"]) == SEVERITIES
    assert get_args(hints["change"]) == (OPENED, UPDATED, CLEARED)
    assert get_args(get_type_hints(vars(twin.Alert)["level"].fget)["return"]) == (WATCH, PAGE)


def test_paged_before_passes_and_fails_by_the_first_page() -> None:
    store, first = "QSG1/APP1", datetime(2026, 11, 20, 1, 40, tzinfo=UTC)
    unknown = dict.fromkeys(("usage_pct", "time_to_full_s", "full_probability"))
    watch = twin.Alert(
        change="opened",
        number=0,
        alert_id="a",
        severity="info",
        store=store,
        resource="entries",
        condition="full-forecast",
        time=event_us(first) - 600_000_000,
        fillers=(),
        cause="",
        **unknown,
    )
    page = msgspec.structs.replace(watch, change="updated", number=1, severity="warning", time=event_us(first))
    elsewhere = msgspec.structs.replace(page, store="QSG1/APP2", time=watch.time)
    states = {store: Driver(twin.demo_estate()).state(store)}
    replayed = twin.Replayed(alerts=[watch, elsewhere, page], states=states)
    for later in (first + timedelta(seconds=1), "2026-11-20T01:40:01Z", page.time + 1):
        assert replayed.paged_before(store, later)
    with pytest.raises(AssertionError, match=rf"^{store}: the first page is at 2026-11-20T01:40:00Z, not before 2026"):
        replayed.paged_before(store, first)
    cleared = msgspec.structs.replace(page, change="cleared")
    with pytest.raises(AssertionError, match=f"^{store}: no page$"):
        twin.Replayed(alerts=[watch, elsewhere, cleared], states=states).paged_before(store, first)
    with pytest.raises(twin.UsageError, match=r"^time noon; expected: RFC 3339"):
        replayed.paged_before(store, "noon")
    with pytest.raises(twin.UsageError, match="the recording has no event of QM99/1"):
        replayed.paged_before("QM99/1", first)


def test_alerts_are_a_table_with_their_level() -> None:
    driver = PageSetDriver()
    driver.put(4_000, count=80)
    for _ in range(30):
        driver.put(100, count=1)
        driver.wait(20)
    driver.put(4_000, count=20)
    table = alert_table(driver.alerts)
    assert table.num_rows == len(driver.alerts) > 0
    assert table["level"].to_pylist() == [json.loads(alert.record())["data"]["level"] for alert in driver.alerts]
    assert [alert.level for alert in driver.alerts] == table["level"].to_pylist()
    assert table["time"].to_pylist() == [alert.when for alert in driver.alerts]
    assert table["filler"].to_pylist()[-1] == "A.QUEUE"
    assert table.schema.field("usage_pct").type == pa.float64()
    assert len(table.to_pandas().columns) == table.num_columns == 15


def test_a_table_without_alerts_has_its_columns() -> None:
    assert alert_table([]).column_names[:3] == ["time", "store", "resource"]
