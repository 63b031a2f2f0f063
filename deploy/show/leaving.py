"""Text and picture of what structures need without SCM, `mqtwin advise --leave-scm`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deploy.show.planning import futures
from deploy.show.terminal import print_table, print_wrapped
from twin.estate import Estate, Structure, format_size
from twin.outputs import Draft
from twin.planning.leave_scm import FacilitySizes, Leaving
from twin.planning.scm_watch import ScmUse, Trial
from twin.units import as_span, readable_size

_HEADINGS = ("", "SIZE", "refused", "at most in use", "faults", "written to SMDS", "SMDS at most")
_RIGHT = frozenset({"SIZE", "refused", "at most in use", "faults"})
_MAX_USES = 10  # that are printed, the highest


def print_leaving(
    estate: Estate, leavings: Sequence[Leaving], facilities: Sequence[FacilitySizes], recording: str
) -> None:
    """Print the uses of SCM, the recording with each plan, the steps, and what coupling facilities have for all.

    Args:
        estate: the estate.
        leavings: the advice for each structure.
        facilities: sums of sizes.
        recording: its name; "": none.
    """
    for leaving in leavings:
        _print_uses(leaving, recording)
        if leaving.trials:
            print()
            print_table(_HEADINGS, [_cells(estate, leaving, trial) for trial in leaving.trials], _RIGHT)
        for number, plan in enumerate(leaving.plans, 1):
            ahead = futures(plan.outcome, leaving.promise)
            since = f"from {_clock(leaving.time)} on {ahead} (at most {100 * (1 - leaving.promise.confidence):.0f} %)"
            proven = "" if leaving.trials else "; not proven: no recording"
            print()
            print_wrapped(f"Plan {number}, {plan.title}: {since}{proven}.")
            for step in plan.steps:
                print_wrapped(f"  -> {step}", "     ")
        for text in leaving.left_out:
            print()
            print_wrapped(f"Left out, {text}.")
        print()
    for sizes in facilities:
        enough = "" if sizes.is_enough else ": not all of them can reach their SIZE"
        own = ", ".join(sizes.planned)
        total, size = format_size(sizes.total), format_size(sizes.size)
        print_wrapped(
            f"{sizes.facility}, with {own} {sizes.title}: its structures may grow to {total}, it has {size}{enough}."
        )


def _print_uses(leaving: Leaving, recording: str) -> None:
    scm, where = f"{leaving.store}: SCMMAXSIZE {format_size(leaving.scm_max_size)}", f"in {recording}"
    if not leaving.uses:
        print_wrapped(f"{scm}, never used {where if recording else f'at {_clock(leaving.time)}'}.")
        return
    if not recording:
        (use,) = leaving.uses
        held = f"{readable_size(use.peak_bytes)}, {use.peak_messages:,} messages"
        print_wrapped(f"{scm}, at {_clock(leaving.time)} {held} in it.")
        return
    print_wrapped(f"{scm}, in use {where}:")
    highest = sorted(leaving.uses, key=lambda use: -use.peak_bytes)[:_MAX_USES]
    for use in sorted(highest, key=lambda use: use.began):
        print_wrapped(f"  {_use_text(use)}", "    ")


def _use_text(use: ScmUse) -> str:
    ended = "the end" if use.ended is None else _later(use.ended, use.began)
    peak = f"{readable_size(use.peak_bytes)}, {use.peak_messages:,} messages, at {_later(use.peak_time, use.began)}"
    return f"{_clock(use.began)} to {ended}: at most {peak}"


def _cells(estate: Estate, leaving: Leaving, trial: Trial) -> tuple[str, ...]:
    config = estate.stores[leaving.store]
    assert isinstance(config, Structure)
    plan = next((plan for plan in leaving.plans if plan.title == trial.proof.title), None)
    size = config.size if plan is None else plan.settings.get("size", config.size)
    assert isinstance(size, int)
    effect = trial.effect
    wait = f" ({as_span(effect.fault_wait_s)})" if effect.faults else ""
    rate = f", at most {effect.pages_per_s:,.1f} pages/s" if effect.pages else ""
    return (
        trial.proof.title,
        format_size(size),
        f"{trial.proof.refused:,}",
        f"{trial.proof.peak_pct:.1f} %",
        f"{effect.faults:,}{wait}",
        f"{effect.offloaded:,} messages{rate}",
        ", ".join(f"{qmgr} {readable_size(size)}" for qmgr, size in sorted(effect.datasets.items())),
    )


def _clock(time: str) -> str:
    return time[:16].replace("T", " ")


def _later(time: str, before: str) -> str:
    """Return a time without its date, if that is the date of the time before."""
    return _clock(time)[11:] if time[:10] == before[:10] else _clock(time)


def draw_leaving(path: Path, leavings: Sequence[Leaving]) -> None:
    """Draw the usage of each structure over the recording: as it is, without SCM, and with each plan."""
    from twin.playback.pictures import Panel, draw_panels, save

    figure = draw_panels(
        [
            Panel(f"{leaving.store} {trial.proof.title}", trial.course.times, trial.course.usage, trial.course.refused)
            for leaving in leavings
            for trial in leaving.trials
        ]
    )
    if path.suffix == ".svg":
        save(figure, path)
    else:
        with Draft(path) as draft:
            figure.savefig(draft.file, format=path.suffix[1:], dpi=130)
