"""A pytest plugin: the recording beside a test is replayed through the estate beside it.

pytest loads this module by its entry point in every session, so the twin is imported only when a test first requests a
replay. Described in docs/testing.md.

Example:
    def test_friday(replayed):
        assert not replayed.alerts
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from twin.base.errors import UsageError

if TYPE_CHECKING:
    from twin.alerts.episodes import Alert
    from twin.playback.replays import Replayed

_ESTATE_OPTION, _RECORDINGS_OPTION = "mqtwin_estate", "mqtwin_recordings"
_ESTATE = "estate.toml"  # the name of an estate that nothing else names
_MAX_LINES = 20  # of alerts in the report of a test that failed


class DeadLetterWarning(pytest.PytestWarning):
    """A recording has events that the estate refuses: the replay skipped them."""


_replays = pytest.StashKey[dict[tuple[Path, Path, bool], "Replayed"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of the configuration file."""
    parser.addini(
        _ESTATE_OPTION, f"estate of the fixture `replayed`; the nearest {_ESTATE} where absent", type="string"
    )
    parser.addini(_RECORDINGS_OPTION, "further folders with recordings of the fixture `replayed`", type="paths")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "recording(name, estate=None, demands=False): the recording and the estate of the fixture `replayed`; with"
        " demands its puts are asked, so that the estate decides which are refused",
    )
    config.stash[_replays] = {}


@pytest.fixture
def replayed(request: pytest.FixtureRequest) -> Replayed:
    """Replay the test's recording through its estate, each pair once per session.

    The recording is the one that the marker `recording` names, else that of the test's name: `friday.arrow`,
    `friday.ndjson` or `friday.ndjson.zst` for `test_friday`. See docs/testing.md for the folders.
    """
    try:
        marked = _marked(request)
        recording = _find_recording(request, marked.name)
        estate = _find_estate(request, marked.estate)
        key = (recording, estate, bool(marked.demands))
        replays = request.config.stash[_replays]
        if key not in replays:
            _announce(request.config)
            replays[key] = _replay(*key)
        result = replays[key]
    except UsageError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if result.dead_letters and result.first_reject is not None:
        total = result.events + result.dead_letters
        first = result.first_reject
        request.node.warn(
            DeadLetterWarning(
                f"{recording}: {result.dead_letters} of {total} events are refused, the first: {first.detail}"
            )
        )
    request.node.add_report_section("setup", "mqtwin", _summary(recording, result.alerts))
    return result


class _Marked(NamedTuple):
    """The arguments of the marker `recording`."""

    name: str | None = None
    estate: str | None = None
    demands: bool | None = None  # None: not given

    def completed(self, other: _Marked) -> _Marked:
        """Return these settings, filled up from another marker."""
        return other._replace(**{name: value for name, value in self._asdict().items() if value is not None})


def _recording(name: str | None = None, *, estate: str | None = None, demands: bool | None = None) -> _Marked:
    """Take the arguments of the marker `recording`."""
    return _Marked(name, estate, demands)


def _marked(request: pytest.FixtureRequest) -> _Marked:
    """Return what markers say; of each argument the nearest marker that has it decides."""
    arguments = _Marked()
    for marker in request.node.iter_markers("recording"):
        try:
            own = _recording(*marker.args, **marker.kwargs)
        except TypeError:
            raise UsageError(
                f"wrong arguments of {marker.name}; "
                f'expected: @pytest.mark.recording("friday.arrow", estate="{_ESTATE}", demands=True)'
            ) from None
        arguments = arguments.completed(own)
    return arguments


def _find_recording(request: pytest.FixtureRequest, name: str | None) -> Path:
    """Return the recording of a test, by the name of its marker, else its own. UsageError: none, or several."""
    from twin.recordings.files import SUFFIXES

    stem = request.function.__name__.removeprefix("test_")
    names = [f"{stem}{suffix}" for suffix in SUFFIXES] if name is None else [name]
    folders: list[Path] = [request.path.parent, *request.config.getini(_RECORDINGS_OPTION)]
    for folder in folders:
        paths = [path for path in (folder / candidate for candidate in names) if path.is_file()]
        if len(paths) > 1:
            raise UsageError(
                f"{folder} has {' and '.join(path.name for path in paths)}; expected: one, or @pytest.mark.recording"
            )
        if paths:
            return paths[0]
    raise UsageError(f"no recording in {', '.join(map(str, folders))}; expected: {' or '.join(names)}")


def _find_estate(request: pytest.FixtureRequest, name: str | None) -> Path:
    """Return the estate of a test: the marker's, that of the configuration, or the nearest upwards. UsageError."""
    config, folder = request.config, request.path.parent
    configured = config.getini(_ESTATE_OPTION)
    if name is not None:
        path = folder / name
    elif configured:
        path = (config.invocation_params.dir if config.inipath is None else config.inipath.parent) / configured
    else:
        for upper in (folder, *folder.parents):
            if (upper / _ESTATE).is_file():
                return upper / _ESTATE
            if upper == config.rootpath:
                break
        raise UsageError(
            f"no {_ESTATE} in {folder} or above it; expected: one, or {_ESTATE_OPTION} in the configuration"
        )
    if not path.is_file():
        raise UsageError(f"{path} is not a file; expected: the estate of {request.node.name}")
    return path


def _announce(config: pytest.Config) -> None:
    """Write on the terminal that kernels are compiled, where that is so: it takes minutes."""
    from twin.stores.warm_up import COMPILING, compiles

    terminal, capture = map(config.pluginmanager.getplugin, ("terminalreporter", "capturemanager"))
    if terminal is None or not compiles():
        return
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        terminal.ensure_newline()
        terminal.write_line(f"mqtwin: {COMPILING}")


def _replay(recording: Path, estate: Path, demands: bool) -> Replayed:
    """Replay a recording. UsageError where no event belongs to the estate: its alerts would say nothing."""
    from twin.estate import load_estate
    from twin.playback.replays import replay

    result = replay(recording, load_estate(estate), demands=demands)
    if not result.events:
        first = f"; the first: {result.first_reject.detail}" if result.first_reject is not None else ""
        raise UsageError(f"{recording} has no event that {estate} takes; expected: one or more{first}")
    return result


def _summary(recording: Path, alerts: Sequence[Alert]) -> str:
    """Return the alerts of a recording, one per line: the report of a test that fails shows it."""
    from twin.base.units import as_text

    lines = [
        f"{as_text(alert.time)} {alert.change} {alert.severity} {alert.store} {alert.resource} {alert.condition}: "
        f"{alert.cause}"
        for alert in alerts[:_MAX_LINES]
    ]
    if len(alerts) > _MAX_LINES:
        lines.append(f"... {len(alerts) - _MAX_LINES} more")
    return "\n".join([f"{recording.name}: {len(alerts)} alerts", *lines])
