"""A replay for data scientists: paths, a short repr, usage and forecasts over time as Arrow tables."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import twin
from tests.support.estates import small_estate
from twin.base.errors import UsageError
from twin.playback.timeline import play_series

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("course")
    estate = small_estate(folder)
    twin.simulate(twin.make_scenario("getter-outage"), twin.load_estate(estate), folder / "outage.arrow", seed=3)
    return folder / "outage.arrow", estate


@pytest.fixture(scope="module")
def replayed(story: tuple[Path, Path]) -> twin.Replayed:
    return twin.replay(*story)


def test_replay_takes_paths(story: tuple[Path, Path], replayed: twin.Replayed) -> None:
    recording, estate = story
    again = twin.replay(str(recording), twin.load_estate(estate))
    assert again.alerts == replayed.alerts and again.states == replayed.states


def test_its_repr_is_short(replayed: twin.Replayed) -> None:
    assert len(repr(replayed)) < 100 and f"{len(replayed.alerts)} alerts" in repr(replayed)


def test_an_alert_has_its_time_as_a_datetime(replayed: twin.Replayed) -> None:
    when = replayed.alerts[0].when
    assert when.tzinfo == UTC and datetime(2026, 11, 20, tzinfo=UTC) < when < datetime(2026, 11, 21, tzinfo=UTC)


def test_usage_over_time_is_what_the_report_samples(story: tuple[Path, Path], replayed: twin.Replayed) -> None:
    table = replayed.usage
    assert table.column_names == ["time", "store", "resource", "usage_pct"]
    assert table.schema.field("time").type == pa.timestamp("us", tz="UTC")
    series = play_series(story[0], twin.load_estate(story[1])).series[STORE]
    of_store = [row for row in table.to_pylist() if (row["store"], row["resource"]) == (STORE, "elements")]
    usage = dict(zip(series.times.tolist(), series.usage[:, series.resources.index("elements")], strict=True))
    assert len(of_store) > 100
    for row in of_store:
        assert usage[round(row["time"].timestamp() * 1e6)] == row["usage_pct"]


def test_forecasts_over_time(replayed: twin.Replayed) -> None:
    table = replayed.forecasts
    assert {"time", "store", "resource", "p10_s", "p50_s", "p90_s", "probability", "is_first"} <= set(
        table.column_names
    )
    times = table["time"].to_pylist()
    assert table.num_rows > 10 and times == sorted(times)


def test_without_a_course_the_tables_are_not_there(story: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="course=True"):
        _ = twin.replay(*story, course=False).usage


def test_pieces_do_not_change_the_course(story: tuple[Path, Path], replayed: twin.Replayed) -> None:
    cut = twin.replay(*story, chunk_events=777)
    assert cut.usage.equals(replayed.usage) and cut.forecasts.equals(replayed.forecasts)


def test_a_picture_has_a_curve_for_each_used_resource_and_a_bar_for_each_alert(replayed: twin.Replayed) -> None:
    figure = replayed.plot(STORE)
    usage, bars = figure.axes
    used = {row["resource"] for row in replayed.usage.to_pylist() if row["store"] == STORE and row["usage_pct"] > 1}
    drawn = {line.get_label(): line.get_ydata().max() for line in usage.lines if line.get_label() in used}
    peaks = {row["resource"]: 0.0 for row in replayed.usage.to_pylist() if row["resource"] in used}
    for row in replayed.usage.to_pylist():
        if row["store"] == STORE and row["resource"] in used:
            peaks[row["resource"]] = max(peaks[row["resource"]], row["usage_pct"])
    assert drawn == pytest.approx(peaks, rel=0.05)
    kinds = {f"{alert.condition} {alert.resource}" for alert in replayed.alerts if alert.store == STORE}
    assert {label.get_text() for label in bars.get_yticklabels()} == kinds
    assert bars.xaxis.get_major_formatter().fmt == "%H:%M"


def test_a_picture_without_names_has_the_fullest_stores(replayed: twin.Replayed) -> None:
    titles = [axes.get_title(loc="left") for axes in replayed.plot().axes[::2]]
    assert titles == sorted(set(replayed.usage["store"].to_pylist()))


def test_a_picture_of_an_unknown_store_or_without_matplotlib_is_refused(
    replayed: twin.Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"no usage of a store QSG1/NONE; expected: QSG1/APP1"):
        replayed.plot("QSG1/NONE")
    monkeypatch.setitem(sys.modules, "twin.playback.pictures", None)
    with pytest.raises(UsageError, match=r"expected: pip install 'mqtwin\[pictures\]'"):
        replayed.plot()


def test_the_package_lists_its_names_and_modules_only() -> None:
    names = {name for name in dir(twin) if not name.startswith("__")}
    assert set(twin.__all__) <= names
    assert "playback" in names and not names & {"Any", "TYPE_CHECKING", "_MODULES", "import_module", "annotations"}
