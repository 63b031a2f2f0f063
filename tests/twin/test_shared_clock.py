"""Shared stores whose sources' clocks, or whose own clock, went far ahead and back again."""

import msgspec
import pytest

from kernels.clock import TRUST
from streams.query.report_records import ReportError, read_reports, report_records
from tests.support.shared import (
    FILES,
    GB,
    START,
    STRUCTURES,
    Shared,
    changes,
    file_report,
    shared_estate,
    structure_report,
)
from tests.support.workloads import START_US
from twin.base.errors import MqtwinError
from twin.base.units import as_text
from twin.estate import Estate
from twin.stores.open import open_store
from twin.stores.reports import BACKLOG_TICKS, SKEW_TICKS, Frontier, Report

FUTURE = 100 * BACKLOG_TICKS
YEARS_S = FUTURE * 10


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return shared_estate(tmp_path_factory.mktemp("shared"), ('scm_max_size = "1G"', 'scm_max_size = "2G"'))


def turned(report: Report, turns: int = 1) -> Report:
    return msgspec.structs.replace(report, turns=turns)


def test_a_source_whose_clock_went_back_begins_its_ticks_anew() -> None:
    frontier = Frontier(caught_up=True)
    again = [turned(file_report(FILES[0], 3)), turned(file_report(FILES[0], 4))]
    for reports in (
        [file_report(FILES[0], 1), file_report(FILES[0], FUTURE)],
        [again[0], file_report(FILES[0], FUTURE + 1), *again],
    ):
        frontier.take(reports)
        while frontier.release(FILES, FILES) is not None:
            pass
    assert [report.tick - START for report in frontier.due(START + FUTURE)] == [1, 3, 4], "the future is dropped"


def test_a_cluster_goes_back_when_the_last_source_has(estate: Estate) -> None:
    store = Shared(estate, "UC01")
    for tick in (1, 2, 3):
        store.reports(*(file_report(name, tick, puts=10, gets=10) for name in FILES))
    store.reports(file_report(FILES[0], FUTURE, puts=10, gets=10, depth=5))
    store.reports(file_report(FILES[0], FUTURE + SKEW_TICKS, puts=10, gets=10, depth=5))
    assert store.state().time > "2027"
    store.reports(*(file_report(name, 4, puts=20, gets=20) for name in FILES[1:]))
    store.reports(turned(file_report(FILES[0], 5, puts=30, gets=30, depth=7)))
    store.reports(*(file_report(name, 5, puts=30, gets=30) for name in FILES[1:]))
    assert store.state().time == as_text((START + 5) * 10_000_000)
    assert store.state().depth == 7
    before = store.state()
    store.reopen()
    assert store.state() == before
    store.reports(
        *(turned(file_report(name, 6, puts=0)) if name == FILES[0] else file_report(name, 6) for name in FILES)
    )
    assert store.state().time == as_text((START + 6) * 10_000_000)


def test_a_time_that_comes_again_gives_another_alert_id(estate: Estate) -> None:
    store = Shared(estate, "CF01")
    store.event(0, "ALTER", attributes={"scm": "1G"})
    store.reports(*(structure_report(name, 1, 60, scm_max=GB) for name in STRUCTURES))
    assert changes(store.alerts)[:1] == [("scm-overcommitted", "opened")]
    store.reports(*(structure_report(name, FUTURE, FUTURE + 60, scm_max=0) for name in STRUCTURES))
    assert changes(store.alerts)[-1:] == [("scm-overcommitted", "cleared")]
    store.reports(*(turned(structure_report(name, 1, 60, scm_max=GB)) for name in STRUCTURES))
    opened = [alert for alert in store.alerts if alert.change == "opened"]
    assert [alert.alert_id.endswith("/1") for alert in opened] == [False, True]
    assert store.state().late_reports == 0


def test_own_events_of_a_wrong_clock_count_when_it_has_gone_back(estate: Estate) -> None:
    store = Shared(estate, "CF01")
    store.reports(*(structure_report(name, 1, 2) for name in STRUCTURES))
    store.event(YEARS_S, "ALTER", attributes={"scm": "1G"})
    for second in range(TRUST):
        store.event(second / 10, "HEARTBEAT")
    assert store.state().time < as_text(START_US + 60_000_000)
    store.reports(*(structure_report(name, 3, 20) for name in STRUCTURES))
    assert store.state().scm_total == GB


def test_a_record_says_how_often_a_clock_went_back_and_only_then(estate: Estate) -> None:
    plain, again = file_report(FILES[0], 9), turned(file_report(FILES[0], 3), 2)
    (_, value), *more = report_records([plain, again], 1 << 20)
    assert not more
    assert read_reports(value, estate) == [plain, again]
    assert "turns" not in msgspec.json.decode(value)["reports"][0]
    with pytest.raises(ReportError, match="ticks that increase"):
        read_reports(next(report_records([again, plain], 1 << 20))[1], estate)


def test_state_of_another_version_is_refused(estate: Estate) -> None:
    header = msgspec.msgpack.encode({"version": 2, "own": [], "episodes": [{}]})
    with pytest.raises(MqtwinError, match=r"CF01 has version 2; this program reads .* begin with a new checkpoint"):
        open_store(estate, "CF01", None, header)
