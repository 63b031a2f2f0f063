"""Targets of the forecast, with measured values: a dozen, each for every set that the forecast was not tuned on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.tools.score.people import counted
from tests.tools.score.score import PAGING_METHODS
from tests.tools.score.table import bounds_text, number, number_of, percent, share_of, span
from tests.tools.score.work import LINE, CaseScore, Loads, classes, measured, values
from twin.forecast.outcomes import HORIZONS
from twin.playback.pages import TWIN

UNSEEN = "unseen scenarios"
VALUED_S = 3600  # horizon of the value
_SKILLED_S = (900, 1800, 3600)  # of the Brier skill
_CALM_PAGES = 0.2  # a store in which nothing fills
_NAMED = 0.95  # of the pages in fillings, whose first queue is the one that fills
_LOOK_MS = 0.5
_SAMPLE_S = 30.0  # between two samples of the line
_LINES = tuple(name for name in PAGING_METHODS if name.startswith("static"))


@dataclass(frozen=True, slots=True)
class Cell:
    """A target in one set. met: None: nothing to measure."""

    measured: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Target:
    """A target. cells: by set of recordings."""

    what: str
    aim: str
    cells: Mapping[str, Cell]

    @property
    def outcome(self) -> str:
        """Reached, if each set reaches it, or missed; empty where there is nothing to measure."""
        known = [cell.met for cell in self.cells.values() if cell.met is not None]
        return "" if not known else "reached" if all(known) else "missed"


def sets_of_targets(scores: Sequence[CaseScore], loads: Loads) -> dict[str, Sequence[CaseScore]]:
    """Return the sets that count, those that tuning never saw in front; a set without cases is none of them."""
    by_class = classes(scores)
    sets = {UNSEEN: by_class["held out"], **loads, "all": by_class["all"]}
    return {name: some for name, some in sets.items() if some}


def targets(scores: Sequence[CaseScore], loads: Loads) -> list[Target]:
    """Return the targets of what was scored."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for name, some in sets_of_targets(scores, loads).items():
        for what, aim, cell in [*_of_probabilities(some), *_of_pages(some), *_of_the_rest(some)]:
            rows.setdefault((what, aim), {})[name] = cell
    return [Target(what, aim, cells) for (what, aim), cells in rows.items()]


_Row = tuple[str, str, Cell]


def _of_probabilities(scores: Sequence[CaseScore]) -> Iterator[_Row]:
    gains = {
        each.cost: each.value.value - each.of_rule.value
        for each in values(scores, HORIZONS.index(VALUED_S))
        if each.value.value is not None and each.of_rule.value is not None
    }
    what = "value less that of the best rule, where it is least (C/L .05 to .5)"
    if gains:
        worst = min(gains, key=lambda cost: gains[cost])
        yield what, "at least 0", Cell(f"{gains[worst]:+.2f} at {worst:g}", gains[worst] >= 0)
    for brier in measured(scores)[TWIN].brier:
        if brier.horizon_s in _SKILLED_S and brier.skill is not None:
            bounds = brier.bounds.get("skill")
            text = number(brier.skill) + bounds_text(bounds, number)
            met = (brier.skill if bounds is None else bounds.low) > 0
            yield f"Brier skill within {span(brier.horizon_s)}, against climatology", "surely above 0", Cell(text, met)


def _of_pages(scores: Sequence[CaseScore]) -> Iterator[_Row]:
    twin, line = counted(scores, TWIN), counted(scores, LINE)
    lines = [counted(scores, name).precision or 0.0 for name in _LINES]
    behind = [seconds for score in scores for seconds in score.behind]
    later = sum(seconds > _SAMPLE_S for seconds in behind)
    per_calm = number_of("per_calm_store")(twin)
    yield (
        "pages a store in which nothing fills",
        f"at most {_CALM_PAGES}",
        Cell(per_calm, None if twin.per_calm_store is None else twin.per_calm_store <= _CALM_PAGES),
    )
    yield (
        "share of pages that was right, beside the best fixed line's",
        "higher",
        Cell(
            f"{share_of('precision')(twin)}; {percent(max(lines))}",
            None if twin.precision is None else twin.precision > max(lines),
        ),
    )
    yield "fillings unheard", "none", Cell(f"{twin.unheard} of {twin.fillings}", twin.unheard == 0)
    yield (
        f"fillings without a page in time, beside {LINE}",
        "no more",
        Cell(f"{twin.late}; {line.late}", twin.late <= line.late),
    )
    yield f"paged later than by {LINE}, where it was right", "none", Cell(f"{later} of {len(behind)}", later == 0)
    yield (
        f"lead of a page, p50, beside {LINE}",
        "longer",
        Cell(
            f"{span(twin.lead_p50)}; {span(line.lead_p50)}",
            None if twin.lead_p50 is None else twin.lead_p50 > (line.lead_p50 or 0.0),
        ),
    )


def _of_the_rest(scores: Sequence[CaseScore]) -> Iterator[_Row]:
    own = measured(scores)[TWIN]
    yield (
        "filler named first is the one that fills",
        f"at least {percent(_NAMED)}",
        Cell(share_of("named")(own), None if own.named is None else own.named >= _NAMED),
    )
    count, spent = (sum(score.looks[part] for score in scores) for part in (0, 1))
    if count:
        yield (
            "processor time of a look",
            f"at most {_LOOK_MS} ms",
            Cell(f"{spent / count:.2f} ms", spent / count <= _LOOK_MS),
        )
