"""Progress of what takes long, as a live line on a terminal: events that are read or written, kernels that compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text
from typing_extensions import override

from deploy.show.terminal import print_line
from twin.events import Reject
from twin.recordings.files import Chunk, LinesChunk
from twin.stores.warm_up import COMPILING, compiles, count_compiled, warm

_MANY_REJECTS = 1_000


class _RateColumn(ProgressColumn):
    @override
    def render(self, task: Task) -> Text:
        events = task.fields["events"]
        return Text(f"{events:,} events  {events / max(task.elapsed or 0.0, 1e-3):,.0f}/s")


class WrongEstate:
    """Says early that an estate takes none of the events of a recording: the end may be minutes away."""

    def __init__(self, recording: Path) -> None:
        self._recording = recording
        self._rejects = 0
        self._first: Reject | None = None
        self._is_over = False

    def note(self, reject: Reject) -> None:
        """Count a dead letter."""
        self._rejects += 1
        self._first = self._first or reject

    def check(self, events: int) -> None:
        """Print a warning, once, if there are a thousand dead letters and no event. events: accepted so far."""
        self._is_over = self._is_over or events > 0
        if self._is_over or self._rejects < _MANY_REJECTS or self._first is None:
            return
        self._is_over = True
        first = f"the first: {self._first.reason}: {self._first.detail}"
        text = f"{self._recording}: not one of {self._rejects:,} events was accepted so far, {first}"
        print_line(f"mqtwin: warning: {text}; is it the estate of this recording?")


class _KernelsColumn(ProgressColumn):
    """A column with the number of kernels that are compiled, by this process or by the one that it waits for."""

    @override
    def render(self, task: Task) -> Text:
        return Text(f"({count_compiled()} done)")


def warm_kernels(console: Console) -> None:
    """Load the kernels, and show that they are compiled first: it takes minutes, once for each version."""
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    text = "loading kernels"
    if compiles():
        text = COMPILING
        columns.insert(2, _KernelsColumn())
        if not console.is_terminal:
            console.print(COMPILING, soft_wrap=True, highlight=False)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(text, total=None)
        warm()


@contextmanager
def show_progress(activity: str, recording: Path | None = None) -> Iterator[Callable[[Chunk | None, int], None]]:
    """Show the progress of an activity. Yield a function that takes the current chunk and the events so far. For a
    plain `.ndjson` file the progress includes the share of the file.
    """
    console = Console(stderr=True)
    has_size = recording is not None and recording.suffix == ".ndjson" and recording.is_file()
    size_bytes = recording.stat().st_size if has_size and recording is not None else None
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _RateColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(activity, total=size_bytes, events=0)
        last_line = -1

        def advance(chunk: Chunk | None, events: int) -> None:
            nonlocal last_line
            new_bytes = 0
            if isinstance(chunk, LinesChunk) and chunk.first != last_line:
                last_line, new_bytes = chunk.first, len(chunk.data)
            progress.update(task, advance=new_bytes, events=events)

        yield advance
