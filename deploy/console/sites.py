"""Several jobs in one console: a page about all of them, what is full first, and the console of each below its name."""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from deploy.console.model import ConsoleModel
from twin.records import ResourceForecast
from twin.records.states import is_full_now

MAX_LINES = 60  # stores on the page, the most urgent ones of all sites; each site's own console has all of its


class _Usage(msgspec.Struct, frozen=True):
    """The usage of a resource, as far as the page shows it; as `deploy.console.model` has it."""

    maximum_label: str | None = None
    label: str = ""
    maximum_pct: float | None = None


class _Summary(msgspec.Struct, frozen=True):
    store: str
    kind: str
    severity: str
    urgency: float
    first: ResourceForecast | None
    resources: tuple[_Usage, ...]
    full: tuple[str, ...]
    is_filling: bool = False
    not_known: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A store of a site."""

    site: str
    store: str
    kind: str
    severity: str  # of its worst open incident; "": none is open
    is_full: bool
    full_in_s: float | None  # the median; null: it is not filling
    resource: str  # the fullest, in words; "": none has a usage
    pct: float | None  # in use of the largest size of that resource; null: as above
    not_known: str  # why nothing can be said of its future; "": it can


class SiteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A site on the page."""

    name: str
    problem: str  # why nothing is heard of it, or why its job has stopped; "": all is well
    waits_for: list[str]  # topics that do not exist yet
    is_ready: bool  # its topics were read to their ends, and its broker answers
    age_s: float | None  # since its job wrote something; null: it never has
    severities: dict[str, int]  # number of stores by severity, "" without an open incident


class SitesModel:
    """The content of the page about several sites."""

    def __init__(self, sites: Mapping[str, ConsoleModel]) -> None:
        self.epoch = uuid.uuid4().hex[:12]
        self._sites = sites

    @property
    def version(self) -> int:
        """The version of the last change."""
        return sum(model.version for model in self._sites.values())

    @property
    def unreadable(self) -> int:
        """Number of records that are neither states nor alerts nor dead letters."""
        return sum(model.unreadable for model in self._sites.values())

    @property
    def is_ready(self) -> bool:
        """True while any site is: one that is away takes nothing from the others."""
        return any(model.is_ready for model in self._sites.values())

    @property
    def problem(self) -> str:
        """Why topics are not read; empty if they are."""
        own = ((name, model.problem) for name, model in self._sites.items())
        return "; ".join(f"{name}: {problem}" for name, problem in own if problem)

    def changes(self, _since: int, extra: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Return the version, and everything as JSON, which is small."""
        version = self.version
        sites = [_status(name, model) for name, model in self._sites.items()]
        return version, msgspec.json.encode({"meta": dict(extra or {}), "sites": sites, "stores": self.lines()})

    def beat(self, extra: Mapping[str, Any] | None = None) -> bytes:
        """Return everything as JSON."""
        return self.changes(0, extra)[1]

    def lines(self) -> list[Line]:
        """Return the most urgent stores of all sites: what is full first, then by time left, then by usage."""
        summaries = (
            (msgspec.json.decode(summary, type=_Summary), name)
            for name, model in self._sites.items()
            for summary in model.most_urgent(MAX_LINES)
        )
        order = heapq.nsmallest(MAX_LINES, summaries, key=lambda own: (not own[0].full, -own[0].urgency, own[1]))
        return [_line(summary, name) for summary, name in order]


PageModel = ConsoleModel | SitesModel  # the content of a page, and its changes


def _line(own: _Summary, site: str) -> Line:
    times = own.first.time_to_full_s if own.first is not None and own.is_filling else None
    top = max(own.resources, key=lambda usage: usage.maximum_pct or 0.0, default=None)
    label = "" if top is None or top.maximum_pct is None else top.maximum_label or top.label
    return Line(
        site=site,
        store=own.store,
        kind=own.kind,
        severity=own.severity,
        is_full=bool(own.full) or (times is not None and is_full_now(times.p50)),
        full_in_s=None if times is None else times.p50,
        resource=label,
        pct=None if top is None else top.maximum_pct,
        not_known=own.not_known,
    )


def _status(name: str, model: ConsoleModel) -> SiteStatus:
    freshness = model.freshness()
    other = f"its records are those of {model.site}" if model.site not in ("", name) else ""
    problem = "" if freshness["connected"] else freshness["problem"] or "its Kafka has not answered yet"
    return SiteStatus(
        name=name,
        problem=problem or freshness["job_problem"] or other,
        waits_for=freshness["missing"],
        is_ready=model.is_ready,
        age_s=freshness["age_s"],
        severities=model.severities(),
    )
