"""The pytest plugin: recordings beside an estate, replayed by the tests of a site."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import twin.playback.replays
from tests.support.traffic import ESTATE, START_US, traffic, write_recording
from twin.estate import load_estate

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[2]
LARGE = ESTATE.replace('size = "1M"', 'size = "256M"').replace('"512K"', '"256M"').replace('"16M"', '"1G"')
NO_ALERT = """
def test_friday(replayed):
    assert not replayed.alerts
    assert not replayed.dead_letters
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a recording that raises alerts in ESTATE and none in LARGE.

    It is replayed once in this process, so that modules are imported here: pytester drops what its runs import.
    """
    folder = tmp_path_factory.mktemp("site")
    estate = folder / "estate.toml"
    path = write_recording(folder / "friday.ndjson.zst", traffic(2000))
    for text, raises in ((ESTATE, True), (LARGE, False)):
        estate.write_text(text, encoding="utf-8")
        assert bool(twin.playback.replays.replay(path, load_estate(estate)).alerts) == raises
    return path


@pytest.fixture
def site(pytester: pytest.Pytester, recording: Path) -> Path:
    """Return a folder with the recording and the estate that it overfills."""
    shutil.copy(recording, pytester.path)
    (pytester.path / "estate.toml").write_text(ESTATE, encoding="utf-8")
    return pytester.path


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the tests of a site with every warning an error, as strict as pytest is."""
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers", "-W", "error", *options)


def failure(result: pytest.RunResult) -> str:
    """Return the message of the only test, which failed before it began."""
    result.assert_outcomes(errors=1)
    lines = result.outlines
    first = next(number for number, line in enumerate(lines) if "ERROR at setup of" in line)
    last = next(number for number, line in enumerate(lines) if "short test summary" in line)
    [text] = lines[first + 1 : last]
    return text


def test_the_plugin_is_installed() -> None:
    names = {entry.name: entry.value for entry in entry_points(group="pytest11")}
    assert names.get("mqtwin") == "twin.testing.pytest_plugin", "install the package again: make setup"


def test_the_plugin_costs_a_session_without_replays_nothing() -> None:
    program = "import sys, twin.testing.pytest_plugin; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"kernels", "msgspec", "numba", "numpy", "pyarrow", "streams", "deploy"}


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("is_there", [True, False])
def test_kernels_that_are_compiled_first_are_announced(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """The first compilation marks the folder of machine code; here it only seems to be absent."""
    monkeypatch.setattr("twin.stores.warm_up.compiles", lambda: not is_there)
    pytester.makepyfile("def test_friday(replayed): pass")
    lines = [line for line in run(pytester).outlines if line.startswith("mqtwin: ")]
    assert lines == ([] if is_there else ["mqtwin: compiling kernels, once for this version: one to three minutes"])


@pytest.mark.usefixtures("site")
def test_an_estate_that_overfills_fails_the_test_and_names_the_alerts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_site=NO_ALERT)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Captured mqtwin setup*", "friday.ndjson.zst: * alerts", "2026-* opened * QSG1/APP?*"]
    )


def test_an_estate_with_room_passes(pytester: pytest.Pytester, site: Path) -> None:
    (site / "estate.toml").write_text(LARGE, encoding="utf-8")
    pytester.makepyfile(test_site=NO_ALERT)
    run(pytester).assert_outcomes(passed=1)


def test_a_marker_names_recording_and_estate_at_every_level(pytester: pytest.Pytester, site: Path) -> None:
    (site / "large.toml").write_text(LARGE, encoding="utf-8")
    (site / "month-end.ndjson.zst").write_bytes((site / "friday.ndjson.zst").read_bytes())
    pytester.makepyfile(
        test_site="""
        import pytest

        pytestmark = pytest.mark.recording("month-end.ndjson.zst")

        def test_small(replayed):
            assert replayed.alerts

        @pytest.mark.recording(estate="large.toml")
        @pytest.mark.parametrize("store", ["QSG1/APP1", "QSG1/APP2"])
        def test_large(replayed, store):
            assert not replayed.alerts
            assert replayed.states[store].full_puts == 0
        """
    )
    run(pytester).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    "configuration",
    [
        {"pytest.ini": "[pytest]\nmqtwin_estate = site/large.toml\nmqtwin_recordings = other recordings\n"},
        {
            "pytest.toml": '[pytest]\nmqtwin_estate = "site/large.toml"\nmqtwin_recordings = ["recordings"]\n',
        },
    ],
)
def test_the_configuration_names_estate_and_folders(
    pytester: pytest.Pytester, site: Path, configuration: dict[str, str]
) -> None:
    for folder in ("site", "recordings", "tests"):
        (site / folder).mkdir()
    (site / "friday.ndjson.zst").rename(site / "recordings" / "friday.ndjson.zst")
    (site / "site" / "large.toml").write_text(LARGE, encoding="utf-8")
    (site / "tests" / "test_site.py").write_text(NO_ALERT, encoding="utf-8")
    for name, text in configuration.items():
        (site / name).write_text(text, encoding="utf-8")
    run(pytester).assert_outcomes(passed=1)
    run(pytester, "tests/test_site.py").assert_outcomes(passed=1)


def test_the_nearest_estate_upwards_is_taken(pytester: pytest.Pytester, site: Path) -> None:
    for folder in ("near/deep", "far"):
        (site / folder).mkdir(parents=True)
        shutil.copy(site / "friday.ndjson.zst", site / folder)
    (site / "near" / "estate.toml").write_text(LARGE, encoding="utf-8")
    (site / "near" / "deep" / "test_near.py").write_text(NO_ALERT, encoding="utf-8")
    (site / "far" / "test_far.py").write_text(NO_ALERT.replace("not replayed.alerts", "replayed.alerts"), "utf-8")
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.usefixtures("site")
def test_tests_of_one_recording_share_a_replay(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    replay = twin.playback.replays.replay

    def counted(*args: Any, **options: Any) -> twin.playback.replays.Replayed:
        nonlocal count
        count += 1
        return replay(*args, **options)

    monkeypatch.setattr(twin.playback.replays, "replay", counted)
    pytester.makepyfile(
        test_site="""
        class TestFriday:
            def test_friday(self, replayed):
                assert replayed.events == 2000

        def test_friday(replayed):
            assert replayed.alerts
        """
    )
    run(pytester).assert_outcomes(passed=2)
    assert count == 1


# --- what cannot be replayed -----------------------------------------------------------------------------------------


def test_a_missing_recording_is_reported_in_one_line(pytester: pytest.Pytester, site: Path) -> None:
    pytester.makepyfile(test_site="def test_monday(replayed): pass")
    assert failure(run(pytester)) == (
        f"no recording in {site}; expected: monday.ndjson or monday.ndjson.zst or monday.arrow"
    )


def test_several_recordings_of_one_name_are_refused(pytester: pytest.Pytester, site: Path) -> None:
    (site / "friday.ndjson").touch()
    pytester.makepyfile(test_site=NO_ALERT)
    assert "has friday.ndjson and friday.ndjson.zst; expected: one" in failure(run(pytester))


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ('"june.arrow"', "expected: june.arrow"),
        ('"friday.ndjson.zst", estate="july.toml"', "july.toml is not a file; expected: the estate of test_friday"),
        ('estat="estate.toml"', "wrong arguments of recording; expected: @pytest.mark.recording("),
        ('"estate.toml"', "estate.toml is no recording by its name"),
        ('estate="friday.ndjson.zst"', "friday.ndjson.zst"),
    ],
)
@pytest.mark.usefixtures("site")
def test_a_marker_that_leads_nowhere_is_reported_in_one_line(pytester: pytest.Pytester, marker: str, text: str) -> None:
    pytester.makepyfile(test_site=f"import pytest\n@pytest.mark.recording({marker})\ndef test_friday(replayed): pass")
    assert text in failure(run(pytester))


def test_a_missing_estate_is_reported_in_one_line(pytester: pytest.Pytester, site: Path) -> None:
    (site / "estate.toml").unlink()
    pytester.makepyfile(test_site=NO_ALERT)
    assert failure(run(pytester)).startswith(f"no estate.toml in {site} or above it; expected: one")


def test_an_estate_that_cannot_be_right_is_reported_in_one_line(pytester: pytest.Pytester, site: Path) -> None:
    (site / "estate.toml").write_text(ESTATE.replace('"1M"', '"1X"'), encoding="utf-8")
    pytester.makepyfile(test_site=NO_ALERT)
    assert "1X" in failure(run(pytester))


def test_a_recording_of_another_estate_fails_although_it_raises_no_alert(pytester: pytest.Pytester, site: Path) -> None:
    (site / "estate.toml").write_text(ESTATE.replace("QM0", "QX0"), encoding="utf-8")
    pytester.makepyfile(test_site=NO_ALERT)
    text = failure(run(pytester))
    assert "friday.ndjson.zst has no event that" in text and "; the first: there is no queue manager" in text


def test_an_empty_recording_fails(pytester: pytest.Pytester, site: Path) -> None:
    (site / "friday.ndjson.zst").unlink()
    (site / "friday.ndjson").touch()
    pytester.makepyfile(test_site=NO_ALERT)
    assert "friday.ndjson has no event that" in failure(run(pytester))


def test_events_that_the_estate_refuses_bring_a_warning(pytester: pytest.Pytester, site: Path) -> None:
    (site / "estate.toml").write_text(LARGE.replace("QSG1/BILLS", "QSG1/INVOICES"), encoding="utf-8")
    pytester.makepyfile(test_site="def test_friday(replayed): assert not replayed.alerts")
    result = run(pytester, "-W", "default::twin.testing.pytest_plugin.DeadLetterWarning")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ['*DeadLetterWarning: *friday.ndjson.zst: * of 2000 events are refused, the first: *"BILLS"*']
    )
    run(pytester).assert_outcomes(errors=1)


# --- the documentation -----------------------------------------------------------------------------------------------


def test_the_example_of_the_documentation_runs(pytester: pytest.Pytester, recording: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    [program] = re.findall(r'^```python title="test_estate.py"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    (pytester.path / "planned").mkdir()
    for name in ("estate.toml", "planned/estate.toml"):
        (pytester.path / name).write_text(LARGE, encoding="utf-8")
    shutil.copy(recording, pytester.path)
    put = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 2048}
    events = ({**put, "time": START_US + n, "count": 1000, "reason": 2192 * (n > 3)} for n in range(9))
    write_recording(pytester.path / "month-end.arrow", events)  # the real system was full
    pytester.makepyfile(test_estate=program)
    run(pytester).assert_outcomes(passed=2)

    (pytester.path / "planned" / "estate.toml").write_text(ESTATE, encoding="utf-8")  # what is planned is too small
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: QSG1/APP1: * of 9,000 puts are refused, the first at 20*"])


def test_the_configuration_of_the_documentation_is_read(pytester: pytest.Pytester, site: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    [text] = re.findall(r'^```toml title="pytest.toml"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    (site / "pytest.toml").write_text(text, encoding="utf-8")
    for folder in ("production", "recordings"):
        (site / folder).mkdir()
    (site / "production" / "estate.toml").write_text(LARGE, encoding="utf-8")
    (site / "friday.ndjson.zst").rename(site / "recordings" / "friday.ndjson.zst")
    pytester.makepyfile(test_site=NO_ALERT)
    run(pytester).assert_outcomes(passed=1)
