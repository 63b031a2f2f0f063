"""The package as a library: names, version, paths and names in place of objects, alerts as a table."""

import inspect
import json
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import mqtwin
import mqtwin.testing
import twin
import twin.testing
from tests.support.twin_driver import PageSetDriver
from twin.playback.replays import alert_table
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
    assert Driver(estate, start=time).time == 1_795_176_004_000_000


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


@pytest.mark.parametrize("name", [name for name in twin.__all__ if inspect.isclass(getattr(twin, name))])
def test_public_classes_document_their_fields(name: str) -> None:
    own = getattr(twin, name)
    fields = getattr(own, "__struct_fields__", None) or tuple(getattr(own, "__dataclass_fields__", ()))
    public = {field for field in fields if not field.startswith("_")}
    _, heading, section = (inspect.getdoc(own) or "").partition("\nAttributes:\n")
    assert heading or not public
    lines = [line.strip().partition(":")[0] for line in section.splitlines() if line.startswith("    ")]
    assert {part.strip() for line in lines for part in line.split(",")} >= public


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
