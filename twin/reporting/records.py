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
    """The growth of the daily peaks of the resource that is full first by it."""

    resource: str
    days: int  # number of days that were compared
    pct_per_day: float | None  # percentage points per day; None: no growth stands out from the differences between days
    days_left: float | None  # days until a daily peak is 100 %; None: never at this growth


class EndedRise(msgspec.Struct, frozen=True, kw_only=True):
    """A rise that ended in the period."""

    began: str
    ended: str
    data_set: str  # queue manager whose data set rose; "": the store in all
    usage_pct: float  # usage of the fullest resource at its end
    refused: int  # puts refused until the next rise began; 0: it turned back


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the fullest resource over the period: the highest of each part of it. times: seconds since 1970."""

    times: tuple[float, ...]
    usage_pct: tuple[float, ...]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements and missing events of a store since its first event."""

    measurements: int  # MEASURE events
    drift_pct: float | None  # twin minus the last measurement, percent of the total; None: none compared
    gaps: int  # gaps, duplicates, unmatched_gets, overfull_puts, refused_alters: as in the state record
    duplicates: int
    unmatched_gets: int
    overfull_puts: int
    refused_alters: int
    seen: tuple[str, ...] = ()  # sentences on which share of puts and gets events report, where that is a part


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the period."""

    store: str
    kind: str
    peaks: tuple[Peak, ...]  # by resource, the fullest first
    course: Course
    growth: Growth | None  # None: fewer than three whole days are known
    rises: tuple[EndedRise, ...]  # those that ended in the period, of the 32 that a store remembers
    minutes_full: int  # minutes of 2192
    coverage: Coverage
    scores: ForecastScores | None  # the job's own scores, of the last 30 days; None: none is settled
    forecast: StateForecast | None = None  # forecast of the last state; None: nothing rises, or it is not known
    long_forecast: LongForecast | UnsetType = UNSET  # long forecast of the last state; absent: it is not known


class SeenAction(DoneAction, frozen=True, kw_only=True):
    """An operator's action, as the events of a store show it; outside incidents its effect is not computed."""

    store: str
    alert_id: str  # the alert that last proposed it; "": none did. With `id` it names the action of that alert.


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """The change by the actions in an incident: the store as it was, and its twin without any from the first on."""

    since: str  # since, until: what is compared: from the first action to two hours after the end of the incident
    until: str
    is_settled: bool  # False while these two hours have not passed
    minutes: int  # minutes, refused: minutes of 2192 and refused puts, as recorded
    refused: int
    minutes_untouched: int  # minutes_untouched, refused_untouched: the same of the untouched twin, same puts
    refused_untouched: int

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that did not come."""
        return max(0, self.minutes_untouched - self.minutes)


class IncidentReport(msgspec.Struct, frozen=True, kw_only=True):
    """An incident that was open in the period."""

    id: str
    store: str
    opened: str  # when its first alert opened
    paged: str | None  # when it called people; None: it never did
    over: str | None  # when nobody had to do anything any more; None: not yet
    urgency: str  # the worst that it was: watch, page, critical or full
    condition: str  # condition, resource, cause: those of the first alert as urgent as that
    resource: str
    cause: str
    # on its page, as the scorecard judges; a false one is averted if the untouched twin refuses
    verdict: PageVerdict | None
    lead_s: float | None  # seconds from the page to the first 2192; None: no page before one
    minutes_full: int  # minutes of 2192 while it was open
    actions: tuple[SeenAction, ...]  # what people did while it was open, in order of time
    consequence: Consequence | None  # what the changes among them changed; None without any
    notes: tuple[Note, ...]  # of people on its alerts, in order: who acknowledged it, what they did, comments

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
    """Pages of the twin, or of a line on usage, in the period."""

    name: str  # "twin", or the name of the line on the scorecard
    pages: int  # number; in_time, late, false, undecided: by verdict of the scorecard, which knows no averted ones
    in_time: int
    late: int
    false: int
    undecided: int
    fillings: int  # number that began to refuse puts in the period; missed: those without a page before
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
