"""Options as they were called before this release: they still work, each with a warning, and are in no help.

The next release removes this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deploy.show.terminal import print_warnings


class Renamed(NamedTuple):
    """A new name of an option. value: derives its value from that of the old one."""

    name: str
    value: str = "{}"


RENAMED = {
    "advise": {"--write": Renamed("--output")},
    "broker": {"--port": Renamed("--listen", "127.0.0.1:{}")},
    "commission": {"--hours": Renamed("--last-hours")},
    "publish": {"--as": Renamed("--content-type")},
    "simulate": {"--hours": Renamed("--set", "hours={}")},
    "size cluster": {"--events-per-second": Renamed("--rate")},
    "start": {"--port": Renamed("--listen", "127.0.0.1:{}")},
    "warm": {"--from": Renamed("--recording")},
}
_CONSOLE = {"--host": "127.0.0.1", "--port": "8470"}  # options that are one option now, and their defaults


def with_new_names(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of `mqtwin` with the present names of options; each old one is a warning."""
    command = next((name for name in (" ".join(tokens[:2]), *tokens[:1]) if name in (*RENAMED, "console")), "")
    old_names, address = RENAMED.get(command, {}), dict[str, str]()
    result: list[str] = []
    rest = list(tokens)
    while rest and rest[0] != "--":
        old, equals, value = rest.pop(0).partition("=")
        new = old_names.get(old)
        if new is not None:
            print_warnings([f"{old} is now {new.name}: the next release does not know {old}"])
            if new.value != "{}" and not equals and rest:
                equals, value = "=", rest.pop(0)
            result.append(f"{new.name}={new.value.format(value)}" if equals else new.name)
        elif command == "console" and old in _CONSOLE and (equals or rest):
            address[old] = value if equals else rest.pop(0)
        else:
            result.append(f"{old}{equals}{value}")
    if address:
        host, port = (address.get(name, default) for name, default in _CONSOLE.items())
        result.append(f"--listen={f'[{host}]' if ':' in host else host}:{port}")
        print_warnings([f"{' and '.join(address)}: now {result[-1]}; the next release does not know the old names"])
    return (*result, *rest)
