"""The report of a recording or of a job, as `mqtwin report --json` prints it: docs/report.md.

Times are RFC 3339, UTC. Usage is in percent of the largest size that a resource may have. A minute of 2192 is a minute
of the clock in which a full store refused a put (2192, of distributed queue managers 2056).
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from twin.records import DoneAction, ForecastScores, LongForecast, Note, StateForecast

PageVerdict = Literal["in time", "late", "false", "averted", "undecided"]


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The highest usage of a resource in the period, its time, and the usage at the end."""

    resource: str
    usage_pct: float
    time: str
    last_pct: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The growth of the daily peaks of the resource that is full first by it.

    Attributes:
        resource: the resource.
        days: number of days that were compared.
        pct_per_day: percentage points per day; None: no growth stands out from the differences between days.
        days_left: days until a daily peak is 100 %; None: never at this growth.
    """

    resource: str
    days: int
    pct_per_day: float | None
    days_left: float | None


class EndedRise(msgspec.Struct, frozen=True, kw_only=True):
    """A rise that ended in the period.

    Attributes:
        data_set: queue manager whose data set rose; "": the store in all.
        usage_pct: usage of the fullest resource at its end.
        refused: puts refused until the next rise began; 0: it turned back.
    """

    began: str
    ended: str
    data_set: str
    usage_pct: float
    refused: int


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the fullest resource over the period: the highest of each part of it. times: seconds since 1970."""

    times: tuple[float, ...]
    usage_pct: tuple[float, ...]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements and missing events of a store since its first event.

    Attributes:
        measurements: MEASURE events.
        drift_pct: twin minus measurement at the last of them, percent of the total; None: none could be compared.
        gaps, duplicates, unmatched_gets, overfull_puts, refused_alters: as in the state record.
        seen: sentences on which share of puts and gets events report, where that is a part.
    """

    measurements: int
    drift_pct: float | None
    gaps: int
    duplicates: int
    unmatched_gets: int
    overfull_puts: int
    refused_alters: int
    seen: tuple[str, ...] = ()


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the period.

    Attributes:
        peaks: by resource, the fullest first.
        growth: None: fewer than three whole days are known.
        rises: those that ended in the period, of the 32 that a store remembers.
        minutes_full: minutes of 2192.
        scores: the job's own scores, of the last 30 days; None: none is settled.
        forecast: forecast of the last state; None: nothing rises, or it is not known.
        long_forecast: long forecast of the last state; absent: it is not known.
    """

    store: str
    kind: str
    peaks: tuple[Peak, ...]
    course: Course
    growth: Growth | None
    rises: tuple[EndedRise, ...]
    minutes_full: int
    coverage: Coverage
    scores: ForecastScores | None
    forecast: StateForecast | None = None
    long_forecast: LongForecast | UnsetType = UNSET


class SeenAction(DoneAction, frozen=True, kw_only=True):
    """An operator's action, as the events of a store show it; outside incidents its effect is not computed.

    Attributes:
        store: the store.
        alert_id: the alert that last proposed it; "": none did. With `id` it names the action of that alert.
    """

    store: str
    alert_id: str


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """The change by the actions in an incident: the store as it was, and its twin from the first action on without any.

    Attributes:
        since, until: what is compared: from the first action to two hours after the end of the incident.
        is_settled: False while these two hours have not passed.
        minutes, refused: minutes of 2192 and refused puts, as recorded.
        minutes_untouched, refused_untouched: the same of the untouched twin, to which the same puts are made.
    """

    since: str
    until: str
    is_settled: bool
    minutes: int
    refused: int
    minutes_untouched: int
    refused_untouched: int

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that did not come."""
        return max(0, self.minutes_untouched - self.minutes)


class IncidentReport(msgspec.Struct, frozen=True, kw_only=True):
    """An incident that was open in the period.

    Attributes:
        opened: when its first alert opened.
        paged: when it called people; None: it never did.
        over: when nobody had to do anything any more; None: not yet.
        urgency: the worst that it was: watch, page, critical or full.
        condition, resource, cause: those of the first alert as urgent as that.
        verdict: on its page, as the scorecard judges it; a false one is averted if the untouched twin refuses puts.
        lead_s: seconds from the page to the first 2192; None: no page before one.
        minutes_full: minutes of 2192 while it was open.
        actions: what people did while it was open, in order of time.
        consequence: what the changes among them changed; None without any.
        notes: those of people on its alerts, in their order: who acknowledged it, what they did, comments.
    """

    id: str
    store: str
    opened: str
    paged: str | None
    over: str | None
    urgency: str
    condition: str
    resource: str
    cause: str
    verdict: PageVerdict | None
    lead_s: float | None
    minutes_full: int
    actions: tuple[SeenAction, ...]
    consequence: Consequence | None
    notes: tuple[Note, ...]

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that the actions avoided; 0 without any."""
        return 0 if self.consequence is None else self.consequence.minutes_avoided


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A filling of a store. is_heard: False if no page was open at any of its refused puts."""

    store: str
    resource: str
    first: str
    last: str
    refused: int
    is_heard: bool


class CallerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of the twin, or of a line on usage, in the period.

    Attributes:
        name: "twin", or the name of the line on the scorecard.
        pages: number; in_time, late, false, undecided: by verdict of the scorecard, which knows no averted ones.
        fillings: number that began to refuse puts in the period; missed: those without a page before.
    """

    name: str
    pages: int
    in_time: int
    late: int
    false: int
    undecided: int
    fillings: int
    missed: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a period.

    Attributes:
        since, until: the period.
        events: events until its end.
        dead_letters: those of the recording that were refused.
        stores: those that hold messages and had an event, by name.
        incidents: in order of their opening.
        fillings: those that began to refuse puts in the period, in order of time.
        actions: changes outside incidents.
        callers: the twin and lines on usage.
    """

    since: str
    until: str
    events: int
    dead_letters: int
    stores: tuple[StoreReport, ...]
    incidents: tuple[IncidentReport, ...]
    fillings: tuple[Refusal, ...]
    actions: tuple[SeenAction, ...]
    callers: tuple[CallerCounts, ...]

    @property
    def minutes_full(self) -> int:
        """Minutes of 2192 of all stores together."""
        return sum(store.minutes_full for store in self.stores)

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that actions avoided, of all incidents together."""
        return sum(incident.minutes_avoided for incident in self.incidents)

    @property
    def pages(self) -> tuple[IncidentReport, ...]:
        """The incidents that called people in the period."""
        return tuple(
            incident for incident in self.incidents if incident.paged is not None and incident.paged >= self.since
        )
