"""Changes that may be handed over: the dry run of one, and the requests."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deploy.show.document import Code, Document, Items, Part, Table, Text, site_time
from deploy.show.planning import cells
from twin.planning.proposals import Proposal
from twin.planning.whatif import DEFAULT_HORIZON_S
from twin.records import ActStatus, Expectation, Measured, Requested, Resulted
from twin.units import as_span

_HEADINGS = ("", "full first", "time to full", "p10 to p90", "probability")
_GAP = Text("")


class ActView(msgspec.Struct, frozen=True, kw_only=True):
    """A request in answers of the console."""

    status: ActStatus
    request: Requested
    approved_by: tuple[str, ...]
    approvers: int | None  # who must approve it by the site's list now; null: it is not allowed any more
    ended: str  # why it is not handed over; "": it may be, or was
    handed: str | None  # UTC; null: it was not
    result: Resulted | None  # the last one
    measured: tuple[Measured, ...]


def proposal_document(proposal: Proposal) -> Document:
    """Return the dry run of a change."""
    place = f"{proposal.store} at {site_time(proposal.state_time, seconds=True)}"
    lines = [
        f"on {proposal.target}",
        *([] if proposal.precondition is None else [f"if {proposal.precondition}"]),
        *([] if proposal.risk is None else [f"risk: {proposal.risk}"]),
        f"way back: {proposal.undo or 'it changes no attribute'}",
        f"whether it has run: {proposal.look}",
        f"hash: {proposal.sha256}",
    ]
    parts: list[Part] = [
        Text(f"{place}: {proposal.summary} ({proposal.action}, step {proposal.step})"),
        Code(proposal.language, proposal.statement),
        _GAP,
        Items(lines, indent=2),
        _GAP,
        Text(f"{as_span(DEFAULT_HORIZON_S)} ahead, if the traffic continues:"),
        _effect(proposal.before, proposal.after),
        _GAP,
        Text("Nothing was changed."),
    ]
    return Document(f"Dry run of {proposal.action}", parts, proposal)


def _effect(before: Expectation, after: Expectation) -> Table:
    rows = [("as it is", *cells(before)[:4]), ("with it", *cells(after)[:4])]
    return Table(_HEADINGS, rows, {"probability"})


def request_document(views: Sequence[ActView]) -> Document:
    """Return requests."""
    if not views:
        return Document("Requests", [Text("nothing was requested")], views)
    parts: list[Part] = []
    for view in views:
        request = view.request
        parts += [_GAP] if parts else []
        needed = "" if view.approvers is None else f" of {view.approvers}"
        approved = f"approved by {', '.join(view.approved_by)}" if view.approved_by else "not approved"
        lines = [
            f"{request.language} on {request.target}: {request.statement}",
            f"hash: {request.sha256}",
            f"requested by {request.who} at {site_time(request.time)}, for {request.action} of {request.alert_id}",
            f"{approved} ({len(view.approved_by)}{needed}), expires {site_time(request.expires)}",
            f"full {_full(request.before)}; with it {_full(request.after)}",
            f"way back: {request.undo or 'it changes no attribute'}",
            *([f"ended: {view.ended}"] if view.ended else []),
            *([] if view.handed is None else [f"handed over at {site_time(view.handed)}"]),
            *([] if view.result is None else [f"{view.result.status} by {view.result.who}: {view.result.text}"]),
            *(_measured(own) for own in view.measured),
        ]
        parts += [Text(f"{request.id}  {view.status}  {request.store}"), Items(lines, indent=2)]
    return Document("Requests", parts, views)


def _full(outlook: Expectation) -> str:
    resource, middle, _, probability, _ = cells(outlook)
    return f"{middle} ({resource}, {probability})"


def _measured(own: Measured) -> str:
    usage = "usage not known" if own.usage_pct is None else f"{own.usage_pct:.1f} % in use"
    full = "" if own.full_s is None else f", full in {as_span(own.full_s)} by the forecast"
    done = "its events do not show it" if own.done is None else own.done
    return f"{as_span(own.after_s)} later: {usage}{full}, alert {own.alert}; {done}"
