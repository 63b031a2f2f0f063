"""Progress of a command that works through events: a line on standard error that renews itself, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from twin.recordings import Chunk, LinesChunk


class _Rate(ProgressColumn):
    """Events so far, and a second."""

    def render(self, task: Task) -> Text:
        events = task.fields["events"]
        return Text(f"{events:,} events  {events / max(task.elapsed or 0.0, 1e-3):,.0f}/s")


@contextmanager
def shown(what: str, recording: Path | None = None) -> Iterator[Callable[[Chunk | None, int], None]]:
    """Shows `what` is going on; the function within takes the piece worked on, if any, and the number of events so far.

    With a plain `.ndjson` recording it also shows how much of the file is done.
    """
    console = Console(stderr=True)
    plain = recording is not None and recording.suffix == ".ndjson" and recording.is_file()
    size = recording.stat().st_size if plain and recording is not None else None
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _Rate(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=size, events=0)
        last = -1

        def advance(chunk: Chunk | None, events: int) -> None:
            nonlocal last
            done = 0
            if isinstance(chunk, LinesChunk) and chunk.first != last:
                last, done = chunk.first, len(chunk.data)
            progress.update(task, advance=done, events=events)

        yield advance
