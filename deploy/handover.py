"""Handing over: requests that were approved go to a command of the site, one at a time, each at most once.

First `handed` is written and read back, then the command is started: whatever happens from there on, nothing is handed
over a second time. Where nobody knows what became of it, the result is `unknown`, and says what to look at. Every rule
that the console has checked is checked again, by the site's list and the estate of this process.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from deploy.bridge import Command
from deploy.show.terminal import printable
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_microseconds, as_text
from twin.estate import Estate
from twin.estate.errors import show
from twin.planning.proposals import (
    Allow,
    Allowed,
    changed_since,
    forecast_of,
    problem_of,
    read_allowed,
    rebuilt,
    size_of,
)
from twin.records import (
    AFTER_S,
    Act,
    ActRecord,
    Acts,
    AlertRecord,
    Expectation,
    Expired,
    Handed,
    Measured,
    Requested,
    Resulted,
    StateRecord,
    resources_of,
)
from twin.records.acts import AHEAD_US, MAX_TEXT, Language, ResultStatus

if TYPE_CHECKING:
    from streams.kafka.notes import ActLog

COMMAND_S = 600.0  # after which a command is ended, and its result unknown
REFUSED = 10  # exit status by which a command says that nothing has run
_MEASURED_FOR_US = 86_400_000_000  # after a result
_LEFT_US = round(COMMAND_S * 1e6) + AHEAD_US  # after which another process has no command running any more
_MEASURE_PERIOD_US = 15_000_000  # between two looks at states that are late

_log = structlog.get_logger("mqtwin.acts")


class HandedOver(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the command gets it on standard input, JSON; fields as of `twin.records.Requested`."""

    id: str
    sha256: str
    language: Language
    target: str
    statement: str
    undo: str | None
    look: str
    store: str
    alert_id: str
    action: str
    step: int
    requested_by: str
    approved_by: tuple[str, ...]
    expires: str
    before: Expectation
    after: Expectation


class Runner:
    """Hands over what is approved. The site's list of actions is read at each look; what a process of the same name
    left behind is unknown at once.
    """

    def __init__(
        self,
        log: ActLog,
        command: Command,
        estate: Estate,
        actions: Path,
        name: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log, self._command, self._estate, self._actions = log, command, estate, actions
        self._name, self._clock = name, clock
        self._unsaid: Resulted | None = None  # a result that is not in the topic yet
        self._reasons: dict[str, str] = {}  # why a request waits, by id
        self._measures_at = 0
        self.handed = 0  # number of requests
        read_allowed(actions)

    def look(self) -> None:
        """Look once: end what has expired, hand over what may be, measure what has come of it. UsageError: the site's
        list or a topic cannot be read. MqtwinError: no Kafka answers.
        """
        acts = self._log.read()
        if self._unsaid is not None:
            self._say(self._unsaid, acts)
            acts = self._log.read()
        acts, now = self._settle(acts), self._now()
        ready = [act.request.id for act in acts.values() if act.is_waiting and (act.approvals or _is_late(act, now))]
        present = None
        for act_id in ready:
            if present is None:
                acts, present = self._log.read(), self._log.present()
            if self._consider(act_id, acts, *present):
                present = None  # it has been written, and may have taken minutes
        measurable = [act for act in acts.values() if _is_measurable(act, now)]
        if measurable and now >= self._measures_at:
            self._measures_at = now + _MEASURE_PERIOD_US
            states, alerts = self._log.present()
            for act in measurable:
                self._measure(act, states.get(act.request.store), alerts)

    def _now(self) -> int:
        return round(self._clock() * 1e6)

    # --- what was left behind ------------------------------------------------------------------------------------

    def _settle(self, acts: Acts) -> Acts:
        """Say of each request that a dead process has handed over that its result is unknown."""
        for act in list(acts.values()):
            handed = act.handed
            if handed is None or act.result is not None:
                continue
            if handed.runner == self._name or self._now() > as_microseconds(handed.time) + _LEFT_US:
                why = "the runner ended before it said what became of it; look by: "
                acts = self._log.write(self._result(act.request, "unknown", why + act.request.look))
        return acts

    # --- handing over --------------------------------------------------------------------------------------------

    def _consider(
        self, act_id: str, acts: Acts, states: Mapping[str, StateRecord], alerts: Mapping[str, AlertRecord]
    ) -> bool:
        """Hand a request over, let it wait, or end it. Return False if it waits."""
        act = acts[act_id]
        if not act.is_waiting:
            return False
        request, now = act.request, max(self._now(), acts.last)
        if problem := self._problem(act, states.get(request.store), alerts, now):
            self._write(Expired(id=act_id, sha256=request.sha256, time=as_text(now), text=_cut(problem)))
            _log.warning("request ended", id=act_id, why=problem)
        elif why := next(self._reasons_to_wait(act, acts, states.get(request.store), alerts), ""):
            if self._reasons.get(act_id) != why:
                _log.info("request waits", id=act_id, why=why)
            self._reasons[act_id] = why
            return False
        else:
            self._hand_over(act, now)
        return True

    def _problem(self, act: Act, state: StateRecord | None, alerts: Mapping[str, AlertRecord], now: int) -> str:
        """Return why a request is not handed over any more; "": it may be."""
        request = act.request
        if _is_late(act, now):
            return f"not handed over until {request.expires}"
        try:
            self._row_of(request)
        except UsageError as error:
            return str(error)
        if state is None or problem_of(request.store, state, alerts.values(), self._now()):
            return ""  # nothing can be said of it: it waits
        alert = alerts.get(request.alert_id)
        return changed_since(request, state, is_open=alert is not None and alert.is_open)

    def _row_of(self, request: Requested) -> tuple[Allow, Allowed]:
        """Return the row that allows a request, which is what its parameters give. UsageError: it does not."""
        config = self._estate.message_stores.get(request.store)
        if config is None:
            raise UsageError(f"{show(request.store)}: the estate has no such store; expected: one that holds messages")
        change, allowed = rebuilt(request, config), read_allowed(self._actions)
        return allowed.row_of(change.kind, request.store, change.settings), allowed

    def _reasons_to_wait(
        self, act: Act, acts: Acts, state: StateRecord | None, alerts: Mapping[str, AlertRecord]
    ) -> Iterator[str]:
        """Yield why a request is not handed over yet; none: it is now."""
        request, now = act.request, self._now()
        row, allowed = self._row_of(request)
        if len(act.approvals) < row.approvers:
            yield f"{len(act.approvals)} of {row.approvers} have approved it"
        if now < acts.last - AHEAD_US:
            yield "this clock has gone back"
        yield from filter(None, [problem_of(request.store, state, alerts.values(), now)])
        if not row.is_open(now, allowed.zone):
            yield f"outside of {', '.join(row.windows)}"
        earlier = [(own, own.handed) for own in acts.values() if own is not act and own.handed is not None]
        recent = row.count(((own.request, handed.time) for own, handed in earlier), now)
        if recent >= row.per_hour:
            yield f"{recent} were handed over in the last hour, {row.per_hour} may be"
        for own, _ in earlier:
            if own.request.store == request.store:
                yield from _reasons_of_other(own, state)

    def _hand_over(self, act: Act, now: int) -> None:
        request = act.request
        handed = Handed(
            id=request.id,
            sha256=request.sha256,
            time=as_text(now),
            runner=self._name,
            token=secrets.token_hex(16),
        )
        if not self._write(handed):
            return
        self.handed += 1
        _log.info("request handed over", id=request.id, statement=request.statement, target=request.target)
        ended = self._command.run(msgspec.json.encode(_handed_over(act)) + b"\n", {})
        status: ResultStatus = "ok" if ended.problem is None else "failed" if ended.status == REFUSED else "unknown"
        text = ended.text if ended.problem is None else ended.problem
        if status == "unknown":
            text = f"look by: {request.look}; {text}"
        self._say(self._result(request, status, text))

    def _result(self, request: Requested, status: ResultStatus, text: str) -> Resulted:
        who, now = f"runner {self._name}"[:64], as_text(self._now())
        return Resulted(id=request.id, sha256=request.sha256, time=now, status=status, who=who, text=_cut(text))

    def _say(self, result: Resulted, acts: Acts | None = None) -> None:
        """Write a result; where Kafka does not take it, at the next look. acts: as they are then."""
        self._unsaid = result
        own = None if acts is None else acts.get(result.id)
        if own is None or own.is_undecided:
            self._log.write(result)
        self._unsaid = None
        _log.info("request has a result", id=result.id, status=result.status, text=result.text)

    def _write(self, record: ActRecord) -> bool:
        """Write a record; return False where another came first, or it may not have been delivered."""
        try:
            self._log.write(record)
        except UsageError:
            raise
        except MqtwinError as error:
            _log.warning("request left", id=record.id, why=str(error))
            return False
        return True

    # --- what came of it -----------------------------------------------------------------------------------------

    def _measure(self, act: Act, state: StateRecord | None, alerts: Mapping[str, AlertRecord]) -> None:
        """Write what the state of a store shows some time after a result."""
        if state is None or state.time is None or act.result is None:
            return
        since = as_microseconds(state.time) - as_microseconds(act.result.time)
        for after_s in AFTER_S:
            if after_s not in act.measured and after_s * 1_000_000 <= since < _MEASURED_FOR_US:
                self._write(_measured(act, after_s, state, alerts.get(act.request.alert_id), as_text(self._now())))


def _reasons_of_other(act: Act, state: StateRecord | None) -> Iterator[str]:
    """Yield why what was handed over before for a store lets another request for it wait."""
    result, time = act.result, None if state is None else state.time
    if act.is_undecided:
        yield f"request {act.request.id} of the same store is {act.status}"
    elif result is not None and time is not None and as_microseconds(time) <= as_microseconds(result.time):
        yield f"the state does not show yet what request {act.request.id} did"


def _is_measurable(act: Act, now: int) -> bool:
    """Return True if it has run, or may have, a day ago at most, and what came of it is due to be measured."""
    if act.result is None or act.result.status == "failed":
        return False
    since = now - as_microseconds(act.result.time)
    return since < _MEASURED_FOR_US and any(since >= own * 1_000_000 for own in AFTER_S if own not in act.measured)


def _is_late(act: Act, now: int) -> bool:
    return now >= as_microseconds(act.request.expires)


def _measured(act: Act, after_s: int, state: StateRecord, alert: AlertRecord | None, now: str) -> Measured:
    request, forecast = act.request, forecast_of(state)
    assert state.time is not None
    assert act.handed is not None
    begin = as_microseconds(act.handed.time) - AHEAD_US
    seen = [own for own in (() if alert is None else alert.data.done) if own.id == request.action]
    done = next((own for own in reversed(seen) if as_microseconds(own.time) >= begin), None)
    usage = [own.maximum_pct for own in resources_of(state) if own.maximum_pct is not None]
    return Measured(
        id=request.id,
        sha256=request.sha256,
        time=now,
        after_s=after_s,
        state_time=state.time,
        usage_pct=max(usage, default=None),
        size=size_of(state),
        full_s=None if forecast is None else forecast.p50,
        probability=None if forecast is None else forecast.probability,
        alert="gone" if alert is None else "open" if alert.is_open else "cleared",
        done=None if done is None else _cut(done.describe(done.time)),
    )


def _handed_over(act: Act) -> HandedOver:
    own = msgspec.structs.asdict(act.request)
    same = {name: own[name] for name in HandedOver.__struct_fields__ if name in own}
    return HandedOver(**same, requested_by=act.request.who, approved_by=act.approvers)


def _cut(text: str) -> str:
    return printable(" ".join(text.split()))[:MAX_TEXT]
