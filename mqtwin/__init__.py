"""mqtwin as a library: the names of `twin`, under the name of the distribution.

| module | names |
| --- | --- |
| `mqtwin` | those of `twin`: `replay`, `simulate`, `what_if`, ... |
| `mqtwin.testing` | tools for tests |
| `mqtwin.simulation` | what a scenario of your own needs |
| `mqtwin.feeds` | what a format of your own needs |
| `mqtwin.records` | alert and state records |

Each is the same object as in `twin`. A name is imported when it is first used, after a look at whose `twin` that is
(`twin/base/installed.py`). The command `mqtwin` begins here, too.
"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twin import *  # noqa: F403 -- its `__all__`
    from twin import __all__ as __all__
    from twin import __version__ as __version__

# By its place: a `twin` of another distribution may be found first.
_INSTALLED = Path(__file__).resolve().parents[1] / "twin" / "base" / "installed.py"


def __getattr__(name: str) -> Any:
    wrong = run_path(str(_INSTALLED))["wrong_package"](("twin",))
    if wrong is not None:
        raise ImportError(wrong)
    import twin

    if name not in {"__all__", "__version__", *twin.__all__}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(twin, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = {name for name in globals() if name.startswith("__")}
    return sorted(own | {"__version__", *__getattr__("__all__")})


def main() -> int:
    """Run the command `mqtwin` and return its exit status."""
    status: int = run_path(str(_INSTALLED))["main"]()
    return status
