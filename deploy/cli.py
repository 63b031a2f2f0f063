"""The command ``mqtwin``: the list of commands, and one treatment of errors for all of them.

The module of a command in :mod:`deploy.commands` is imported when the command runs, so ``mqtwin --help`` imports
neither Spark nor Kafka. A command returns None or its exit status; Ctrl-C ends it with 130, a closed standard output
with 141, as in any shell. An error is one line on standard error, after its traceback with ``--debug``:

- :class:`twin.base.errors.UsageError`: wrong use or input, exit status 2
- a package of an extra that is not installed: exit status 2, with the command that installs it
- any other :class:`twin.base.errors.MqtwinError`: a failure while running, exit status 1
- any other exception: a defect, exit status 1
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Annotated, Any, NamedTuple

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import UnknownCommandError, UnusedCliTokensError

from deploy.options.common import TOKENS, check_files, open_secrets
from deploy.show.document import ZONE
from deploy.show.terminal import print_line, print_warnings
from twin.base.errors import CutRecordingWarning, MqtwinError, UsageError

# Packages of the extra `stream`, by the names under which they are imported.
STREAM_PACKAGES = frozenset({"confluent_kafka", "jgo", "kafka", "pandas", "py4j", "pyspark", "requests", "tenacity"})
MCP_PACKAGES = frozenset({"mcp"})  # the same of the extra `mcp`

DONE, FAILED, WRONG_USE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

# name: (module and function, or module and cyclopts.App for a group of commands; summary in mqtwin --help)
COMMANDS = {
    "acknowledge": ("deploy.commands.acts:acknowledge", "Note that somebody looks after an alert."),
    "act": ("deploy.commands.advise:act", "Show what a step of a runbook would run, and its effect."),
    "acted": ("deploy.commands.acts:acted", "Note that an action of an alert was taken."),
    "acts": ("deploy.commands.acts:acts", "Request, approve and hand over changes that alerts propose."),
    "advise": ("deploy.commands.advise:advise", "Find the smallest change that keeps a store from filling."),
    "alerts": ("deploy.commands.alerts:alerts", "Print alerts as they arrive."),
    "bridge": ("deploy.commands.alerts:bridge", "Forward alerts to Alertmanager."),
    "broker": ("deploy.commands.broker:broker", "Run the embedded Kafka broker until Ctrl-C or SIGTERM."),
    "checkpoint": ("deploy.commands.stream:checkpoint", "Check, describe or move a checkpoint on this machine."),
    "collect": ("deploy.commands.collect:collect", "Collect live data (spans, REST, RMF, Prometheus) as events."),
    "commission": ("deploy.commands.commission:commission", "Say whether the twin is fit at this site, and why not."),
    "compare": ("deploy.commands.tune:compare", "Compare two estates on recorded nights, for a pull request."),
    "console": ("deploy.commands.console:console", "Serve a page about every store: what fills, when, why."),
    "demo": ("deploy.commands.demo:demo", "Fill a structure in fast motion, with alerts before the first 2192."),
    "doctor": ("deploy.commands.doctor:doctor", "Check the prerequisites, or the way to Kafka."),
    "estate": ("deploy.commands.estate:estate", "Check an estate file, or write one from data of a site."),
    "export": ("deploy.commands.export:export", "Serve metrics to Prometheus."),
    "import": ("deploy.commands.estate:import_", "Convert files of a site (SMF, command output, ...) to a recording."),
    "judge": ("deploy.commands.acts:judge", "Say whether a page was useful: the next ones follow."),
    "mcp": ("deploy.commands.mcp:mcp", "Answer programs that ask (Model Context Protocol); reads only."),
    "plan": ("deploy.commands.plan:plan", "Announce, find, import, list or cancel planned work."),
    "publish": ("deploy.commands.record:publish", "Publish a recording to the events topic."),
    "record": ("deploy.commands.record:record", "Record the events topic into a file."),
    "replay": ("deploy.commands.replay:replay", "Replay a recording through the twin, without Kafka or Spark."),
    "report": ("deploy.commands.report:report", "Report a night: what came close, pages, actions, room left."),
    "share": ("deploy.commands.share:share", "Write a recording that others may see, under pseudonyms."),
    "simulate": ("deploy.commands.replay:simulate", "Simulate a scenario: a recording with its true 2192s."),
    "size": ("deploy.commands.size:size", "Plan the storage that a number of messages needs."),
    "start": ("deploy.commands.start:start", "Show the files of a site: an estate, a recording, and the console."),
    "state": ("deploy.commands.stream:state", "Print the state records in a checkpoint, without Kafka."),
    "stream": ("deploy.commands.stream:stream", "Run the streaming job: events in, alerts and states out."),
    "tune": ("deploy.commands.tune:tune", "Try on recordings how needless a call may be, and what that brings."),
    "warm": ("deploy.commands.warm:warm", "Learn from recordings how the rises of stores ended."),
    "whatif": ("deploy.commands.advise:whatif", "Compare when a store is full with other settings or traffic."),
}

# The groups of mqtwin --help: what somebody is about to do, and the commands for it, those needed first at the top.
JOBS = {
    "Look": ("demo", "start", "console", "replay", "report", "state"),
    "Run": ("stream", "collect", "broker", "record", "publish", "import", "share", "checkpoint", "doctor"),
    "Plan": ("estate", "plan", "whatif", "advise", "size"),
    "Watch": ("alerts", "acknowledge", "act", "acts", "acted", "judge", "tune", "commission"),
    "Test": ("simulate", "compare", "warm"),
    "Serve": ("export", "bridge", "mcp"),
}


def _version() -> str:
    try:
        return importlib.metadata.version("mqtwin")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _new_app() -> App:
    app = App(name="mqtwin", version=_version, suppress_keyboard_interrupt=False)
    app.meta.suppress_keyboard_interrupt = False  # the meta app has a setting of its own
    for place, (job, names) in enumerate(JOBS.items()):
        group = Group(job, sort_key=place)
        for own, name in enumerate(names):
            target, text = COMMANDS[name]
            app.command(target, name=name, help=text, group=group, sort_key=own)

    @app.meta.default
    def run(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        debug: Annotated[bool, Parameter(negative="", env_var="MQTWIN_DEBUG")] = False,
    ) -> Any:
        """A live twin of IBM MQ shared-queue storage: what fills, when it is full, what to do."""
        if debug:
            os.environ["MQTWIN_DEBUG"] = "1"  # processes that this one starts read it too
        tokens = with_new_names(tokens)
        TOKENS.set(tokens)
        ZONE.set(UTC)
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        if command.__module__.startswith("deploy."):  # not --help and --version
            check_files(command, bound.arguments)
            print_warnings(open_secrets(command, bound.arguments))
        return command(*bound.args, **bound.kwargs)

    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mqtwin`` with ``arguments``, by default those of the process, and return its exit status."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _one_line_warnings():
            status = _new_app().meta(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _report(error, _one_line(error), WRONG_USE)
    except MqtwinError as error:
        return _report(error, str(error), WRONG_USE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Otherwise the interpreter reports the closed pipe at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last handler: it reports every defect
        return _report(error, *_explained(error))
    return DONE if status is None else int(status)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print the warning about a recording without an end as one line on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", CutRecordingWarning)
        show = warnings.showwarning

        def show_one_line(message: Warning | str, category: type[Warning], *arguments: Any, **options: Any) -> None:
            if issubclass(category, CutRecordingWarning):
                print_warnings([str(message)])
            else:
                show(message, category, *arguments, **options)

        warnings.showwarning = show_one_line
        yield


def _one_line(error: CycloptsError) -> str:
    """Return the error of cyclopts without the name of the Python function."""
    error.verbose = False
    command_path = "".join(f"{command}: " for command in error.command_chain or ())
    match error:
        case UnknownCommandError(unused_tokens=[wrong, *_]) if not command_path:  # cyclopts' text imports every command
            return f"{wrong}: no such command; expected: {', '.join(COMMANDS)}"
        case UnusedCliTokensError(unused_tokens=[wrong, *_]):
            return f"{command_path}{wrong}: one argument too many"
    return f"{command_path}{error}"


def _explained(error: Exception) -> tuple[str, int]:
    """Return one line about any error, and the exit status."""
    if getattr(error, "is_wrong_use", False):  # set by kernels, which cannot import UsageError
        return str(error), WRONG_USE
    cause: BaseException | None = error
    while isinstance(cause, ImportError):  # cyclopts raises its own from that of a command's module
        package = (cause.name or "").partition(".")[0]
        if package in MCP_PACKAGES:
            return f"this needs {package}, which is not installed; expected: pip install 'mqtwin[mcp]'", WRONG_USE
        if package in STREAM_PACKAGES:
            needed = f"this needs Kafka or Spark, and {package} is not installed"
            return f"{needed}; expected: pip install 'mqtwin[stream]'", WRONG_USE
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error} (--debug shows where)", FAILED


def _report(error: BaseException, text: str, status: int) -> int:
    if os.environ.get("MQTWIN_DEBUG", "").lower() in {"1", "true", "yes"}:
        traceback.print_exception(error)
    print_line(f"mqtwin: {' '.join(text.split())}")
    return status


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
    """Return the arguments of `mqtwin` with the present names of options.

    An old name still works, with a warning, and is in no help. The next release knows none of them.
    """
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
