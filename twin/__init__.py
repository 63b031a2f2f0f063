"""The live twin of IBM MQ storage, without Spark and without Kafka: for notebooks, tests and the stream alike.

| name | module | use |
| --- | --- | --- |
| `load_estate`, `Estate` | `twin.estate` | read what exists |
| `Decoder` | `twin.events` | decode events; a value that is refused gets its reason |
| `open_store` | `twin.stores.open` | open the twin of one store |
| `replay`, `Replayed` | `twin.playback.replays` | play a recording through the twins of an estate |
| `commission`, `Commission` | `twin.playback.commission` | does the twin do what it promises, at a site? |
| `Timeline` | `twin.playback.timeline` | open every moment of a recording, one soon after another |
| `at_moment`, `what_if`, `Traffic` | `twin.planning` | roll a store forward under other settings or traffic |
| `advise`, `Promise`, `prove` | `twin.planning` | find the least change that keeps a promise, and prove it |
| `find_plans` | `twin.planning.proof` | what recurs in recordings, as planned work |
| `hindsight` | `twin.planning.proof` | would other settings from a past moment on have held? |
| `report` | `twin.reporting.report` | report what happened in a period of a recording |
| `compare` | `twin.reporting.records` | what recorded nights would have been under two estates |
| `tune` | `twin.reporting.tuning` | pages of recordings by what a saved filling is worth |
| `simulate`, `scenarios`, `make_scenario`, `demo_estate` | `twin.simulation` | make recordings with their true 2192s |
| `Alert` | `twin.alerts.episodes` | one record of an alert |
| `MqtwinError`, `UsageError` | `twin.base.errors` | exceptions: a failure while running; wrong use or input |

`__version__` is the version. A name is imported when it is first used, so that `import twin` is quick. `twin.testing`
has tools for tests.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from twin.base.installed import wrong_package

__distribution__ = "mqtwin"  # read by twin/base/installed.py

_wrong = wrong_package(("kernels",))
if _wrong is not None:
    raise ImportError(_wrong)

if TYPE_CHECKING:
    from twin.alerts.episodes import Alert
    from twin.base.errors import MqtwinError, UsageError
    from twin.estate import Estate, load_estate
    from twin.events import Decoder
    from twin.planning.advise import Promise, advise
    from twin.planning.proof import find_plans, hindsight, prove
    from twin.planning.whatif import Traffic, at_moment, what_if
    from twin.playback.commission import Commission, commission
    from twin.playback.replays import Replayed, replay
    from twin.playback.timeline import Timeline
    from twin.reporting.records import compare
    from twin.reporting.report import report
    from twin.reporting.tuning import tune
    from twin.simulation import demo_estate, make_scenario, scenarios, simulate
    from twin.stores.open import open_store

    __version__: str

_MODULES = {
    "Alert": "alerts.episodes",
    "Commission": "playback.commission",
    "Decoder": "events",
    "Estate": "estate",
    "MqtwinError": "base.errors",
    "Promise": "planning.advise",
    "Replayed": "playback.replays",
    "Timeline": "playback.timeline",
    "Traffic": "planning.whatif",
    "UsageError": "base.errors",
    "advise": "planning.advise",
    "at_moment": "planning.whatif",
    "commission": "playback.commission",
    "compare": "reporting.records",
    "demo_estate": "simulation",
    "find_plans": "planning.proof",
    "hindsight": "planning.proof",
    "load_estate": "estate",
    "make_scenario": "simulation",
    "open_store": "stores.open",
    "prove": "planning.proof",
    "replay": "playback.replays",
    "report": "reporting.report",
    "scenarios": "simulation",
    "simulate": "simulation",
    "tune": "reporting.tuning",
    "what_if": "planning.whatif",
}

__all__ = [
    "Alert",
    "Commission",
    "Decoder",
    "Estate",
    "MqtwinError",
    "Promise",
    "Replayed",
    "Timeline",
    "Traffic",
    "UsageError",
    "advise",
    "at_moment",
    "commission",
    "compare",
    "demo_estate",
    "find_plans",
    "hindsight",
    "load_estate",
    "make_scenario",
    "open_store",
    "prove",
    "replay",
    "report",
    "scenarios",
    "simulate",
    "tune",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mqtwin")
    except PackageNotFoundError:
        return "not installed"


def __dir__() -> list[str]:
    own = {name for name, value in globals().items() if name.startswith("__") or isinstance(value, ModuleType)}
    return sorted(own | {"__version__", *__all__})
