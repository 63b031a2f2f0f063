"""Requests of people to change something, taken at the console: who requests and who approves is verified there.

mqtwin executes nothing. What is requested is made here from the alert and the store's own twin, never from texts of the
one who asks; the runner of the site checks all of it again before it hands it over (`deploy.handover`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from deploy.console.answers import Answers, converted
from deploy.show.planning import ActView
from streams.kafka.notes import ActLog
from twin.base.errors import UsageError
from twin.base.units import as_span, as_text
from twin.estate.errors import show
from twin.planning.proposals import MAX_AGE_US, Allow, Allowed, alert_of, problem_of, propose, read_allowed
from twin.records import Act, ActRecord, Acts, Approved, Requested, Resulted, Withdrawn
from twin.records.acts import AHEAD_US, Hash, Remark, ResultStatus

MAX_LISTED = 100  # requests, the latest
DEFAULT_MINUTES = 15
MAX_MINUTES = 240


class ActRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /api/acts. step: null: the only one that is a change; minutes: until it expires."""

    alert_id: str
    action: str
    step: int | None = None
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_MINUTES)] = DEFAULT_MINUTES


class HashRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /api/acts/ID/approve and /withdraw: the hash of what was read."""

    sha256: Hash


class ResultRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /api/acts/ID/result."""

    sha256: Hash
    status: ResultStatus
    text: Remark = ""


class ActDesk:
    """Takes requests, approvals and results of people whose names are verified.

    Every method that takes the decoded body of a request raises UsageError where it cannot be done, and MqtwinError
    where no Kafka answers. who: the verified name. The site's list of actions is read at each request.
    """

    def __init__(self, log: ActLog, answers: Answers, actions: Path, clock: Callable[[], float] = time.time) -> None:
        self._log, self._answers, self._actions, self._clock = log, answers, actions, clock
        read_allowed(actions)

    def views(self) -> list[ActView]:
        """Return the latest requests, the last first."""
        acts, allowed = list(self._log.read().values()), self._allowed_now()
        return [_view(act, allowed) for act in reversed(acts[-MAX_LISTED:])]

    def request(self, content: Any, who: str) -> ActView:
        """Request a change."""
        asked = converted(content, ActRequest)
        allowed = read_allowed(self._actions)
        with self._log.lock:
            acts = self._log.read()
            now = self._now(acts)
            states, alerts = self._log.present()
            alert = alert_of(alerts, asked.alert_id, "the topic")
            store = alert.data.store
            state = states.get(store)
            if problem := problem_of(store, state, alerts.values(), now):
                raise UsageError(problem)
            with self._answers.moment(store, None) as moment:
                _check_near(store, moment.twin.clock, now)
                own = propose(alert, asked.action, asked.step, moment, state)
            row = allowed.row_of(own.kind, store, own.settings)
            if not row.is_open(now, allowed.zone):
                raise UsageError(f"{own.kind} of {store} is not allowed now; expected: {', '.join(row.windows)}")
            recent = row.count(((act.request, act.request.time) for act in acts.values()), now)
            if recent >= row.per_hour:
                raise UsageError(f"{recent} {own.kind} requested in the last hour; expected: {row.per_hour}")
            parts = msgspec.structs.asdict(own)
            for name in ("summary", "precondition", "risk"):
                del parts[name]
            text = as_text(now)
            key = msgspec.json.encode([own.sha256, own.alert_id, own.action, own.step, who, text])
            request = Requested(
                id=hashlib.sha256(key).hexdigest()[:16],
                time=text,
                who=who,
                expires=as_text(now + asked.minutes * 60_000_000),
                **parts,
            )
            return self._written(request)

    def approve(self, act_id: str, content: Any, who: str) -> ActView:
        """Approve a request of somebody else, by its hash."""
        asked = converted(content, HashRequest)
        with self._log.lock:
            act, acts = self._find(act_id)
            request, now = act.request, as_text(self._now(acts))
            read_allowed(self._actions).row_of(request.kind, request.store, request.settings)
            if problem := act.problem_of_approval(who, asked.sha256, now):
                raise UsageError(f"request {act_id}: {problem}")
            return self._written(Approved(id=act_id, sha256=asked.sha256, time=now, who=who))

    def withdraw(self, act_id: str, content: Any, who: str) -> ActView:
        """Withdraw a request that was not handed over yet."""
        asked = converted(content, HashRequest)
        with self._log.lock:
            act, acts = self._find(act_id)
            _check_hash(act, asked.sha256)
            if not act.is_waiting:
                raise UsageError(f"request {act_id} is {act.status}; expected: one that was not handed over")
            now = as_text(self._now(acts))
            return self._written(Withdrawn(id=act_id, sha256=asked.sha256, time=now, who=who))

    def result(self, act_id: str, content: Any, who: str) -> ActView:
        """Say what became of a request that was handed over and of which nobody knows it."""
        asked = converted(content, ResultRequest)
        with self._log.lock:
            act, acts = self._find(act_id)
            _check_hash(act, asked.sha256)
            if not act.is_undecided or asked.status == act.status:
                raise UsageError(f"request {act_id} is {act.status}; expected: one whose result is not known")
            now, text = as_text(self._now(acts)), " ".join(asked.text.split())
            record = Resulted(id=act_id, sha256=asked.sha256, time=now, status=asked.status, who=who, text=text)
            return self._written(record)

    def _now(self, acts: Acts) -> int:
        """Return the time, microseconds since 1970. UsageError: the clock has gone back."""
        now = round(self._clock() * 1e6)
        if now < acts.last - AHEAD_US:
            back = as_span((acts.last - now) / 1e6)
            raise UsageError(f"this clock is {back} behind the last record of the topic; expected: clocks that agree")
        return now

    def _find(self, act_id: str) -> tuple[Act, Acts]:
        acts = self._log.read()
        if act_id not in acts:
            raise UsageError(f"request {show(act_id)}: there is none of this id; expected: one of mqtwin acts list")
        return acts[act_id], acts

    def _written(self, record: ActRecord) -> ActView:
        return _view(self._log.write(record)[record.id], self._allowed_now())

    def _allowed_now(self) -> Allowed:
        """Return what the site allows now; nothing where its list cannot be read."""
        try:
            return read_allowed(self._actions)
        except UsageError:
            return Allowed()


def _view(act: Act, allowed: Allowed) -> ActView:
    request, ended = act.request, ""
    if act.end is not None and act.handed is None:
        ended = f"withdrawn by {act.end.who}" if isinstance(act.end, Withdrawn) else act.end.text
    row: Allow | None = None
    with suppress(UsageError):
        row = allowed.row_of(request.kind, request.store, request.settings)
    return ActView(
        status=act.status,
        request=request,
        approved_by=act.approvers,
        approvers=None if row is None else row.approvers,
        ended=ended,
        handed=None if act.handed is None else act.handed.time,
        result=act.result,
        measured=tuple(act.measured.values()),
    )


def _check_hash(act: Act, sha256: str) -> None:
    if sha256 != act.request.sha256:
        raise UsageError(f"request {act.request.id}: the hash is of something else; expected: {act.request.sha256}")


def _check_near(store: str, clock: int, now: int) -> None:
    """Check that the console's own twin has come as far as the job. clock: its time, microseconds."""
    if abs(now - clock) > MAX_AGE_US:
        raise UsageError(f"the console's twin of {store} is at {as_text(clock)}; expected: within a minute of now")
