"""The command ``mqtwin``: which commands there are, and what every one of them promises about errors.

A command lives in a module of :mod:`deploy.commands` that is imported when the command is run, so that
``mqtwin --help`` imports neither Spark nor Kafka. It returns None or its exit status and raises:

- :class:`twin.errors.UsageError` for wrong use or input: one line on standard error, exit status 2;
- any other :class:`twin.errors.MqtwinError` for a failure while running: one line, exit status 1.

Any other exception is a defect: one line as well, exit status 1. ``--debug`` or ``MQTWIN_DEBUG=1`` shows the traceback.
Ctrl-C ends with 130, a reader of our standard output that has gone away with 141, as in any shell.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import UnknownCommandError, UnusedCliTokensError

from twin.errors import CutRecordingWarning, MqtwinError, UsageError

DONE, FAILED, WRONG_USE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

# name: (module and function, or module and cyclopts.App for a group of commands; what it does)
COMMANDS = {
    "alerts": ("deploy.commands.alerts:alerts", "A subscriber in the terminal: alerts as they come."),
    "broker": ("deploy.commands.broker:broker", "The embedded Kafka in the foreground, until Ctrl-C or SIGTERM."),
    "checkpoint": (
        "deploy.commands.checkpoint:checkpoint",
        "Look at a checkpoint of this machine: is it sound, what does it belong to.",
    ),
    "demo": ("deploy.commands.demo:demo", "A structure fills in fast motion; alerts come before the first 2192."),
    "doctor": ("deploy.commands.doctor:doctor", "What is missing on this machine, and how to get it."),
    "estate": ("deploy.commands.estate:estate", "Look at an estate: parse, warn, summarise."),
    "import-trace": ("deploy.commands.import_trace:import_trace", "A trace of real requests becomes a recording."),
    "publish": ("deploy.commands.publish:publish", "A recording into the events topic."),
    "record": ("deploy.commands.record:record", "The events topic into a recording."),
    "replay": ("deploy.commands.replay:replay", "A recording through the twin, without Kafka or Spark."),
    "score": ("deploy.commands.score:score", "The scorecard: alerts held against the true 2192s, baselines beside."),
    "simulate": ("deploy.commands.simulate:simulate", "A scenario becomes a recording with its true 2192s."),
    "size": ("deploy.commands.size:size", "How much storage so many messages need: advice from the documents."),
    "state": ("deploy.commands.state:state", "The state records that a checkpoint holds, without Kafka."),
    "stream": ("deploy.commands.stream:stream", "The streaming job: events in, alerts and state out."),
}


def _version() -> str:
    try:
        return importlib.metadata.version("mqtwin")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _new_app() -> App:
    app = App(name="mqtwin", version=_version, suppress_keyboard_interrupt=False)
    app.meta.suppress_keyboard_interrupt = False  # neither takes it from the other
    for name, (target, text) in COMMANDS.items():
        app.command(target, name=name, help=text)

    @app.meta.default
    def run(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        debug: Annotated[bool, Parameter(negative="", env_var="MQTWIN_DEBUG")] = False,
    ) -> Any:
        """A live twin of IBM MQ shared-queue storage: what fills, when it is full, what to do.

        Args:
            tokens: The command and what follows it.
            debug: Show the traceback of an error.
        """
        if debug:
            os.environ["MQTWIN_DEBUG"] = "1"  # for whatever this process starts, too
        return app(tokens, exit_on_error=False, print_error=False, result_action="return_value")

    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``mqtwin`` with ``arguments`` (those of the process by default) and returns its exit status."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _warnings_in_one_line():
            status = _new_app().meta(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _complain(error, _in_one_line(error), WRONG_USE)
    except MqtwinError as error:
        return _complain(error, str(error), WRONG_USE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last line of defence: reported, exit status 1
        wrong_use = getattr(error, "is_wrong_use", False)  # of kernels, which know no UsageError
        text = str(error) if wrong_use else f"{type(error).__name__}: {error} (--debug shows where)"
        return _complain(error, text, WRONG_USE if wrong_use else FAILED)
    return DONE if status is None else int(status)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Within it a recording whose end is missing is told of in one line of standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", CutRecordingWarning)
        show = warnings.showwarning

        def show_in_one_line(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, CutRecordingWarning):
                print("mqtwin: warning:", message, file=sys.stderr)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = show_in_one_line
        yield


def _in_one_line(error: CycloptsError) -> str:
    """What cyclopts says, without the function it was going to call."""
    error.verbose = False
    where = "".join(f"{command}: " for command in error.command_chain or ())
    match error:
        case UnknownCommandError(unused_tokens=[wrong, *_]) if not where:  # its own text imports every command
            return f"{wrong}: no such command: {', '.join(COMMANDS)} are right"
        case UnusedCliTokensError(unused_tokens=[wrong, *_]):
            return f"{where}{wrong}: one argument too many"
    return f"{where}{error}"


def _complain(error: BaseException, text: str, status: int) -> int:
    if os.environ.get("MQTWIN_DEBUG", "").lower() in {"1", "true", "yes"}:
        traceback.print_exception(error)
    print("mqtwin:", " ".join(text.split()), file=sys.stderr)
    return status
