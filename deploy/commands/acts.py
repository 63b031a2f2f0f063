"""``mqtwin acts``, ``mqtwin acted``, ``mqtwin acknowledge`` and ``mqtwin judge``: changes, and notes on alerts.

- ``mqtwin acts``: changes that people request and approve at the console, and their handing over to a command.
- The others write a note on an alert.
"""

from __future__ import annotations

import getpass
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import structlog
from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from deploy.bridge import Command
from deploy.commands.advise import Step
from deploy.console.acts import DEFAULT_MINUTES, MAX_MINUTES
from deploy.handover import COMMAND_S, Runner
from deploy.options.common import EstateFile, Flag, InputFile, KafkaOptions, SecretFile, open_estate
from deploy.show.planning import ActView, request_document
from deploy.show.terminal import emit, printable
from streams.host.signals import until_stopped
from streams.kafka.notes import ActLog, read_noted_alerts, tell_store, write_note
from streams.log import configure_logging
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_text
from twin.records import ACKNOWLEDGED, ACTED, check_note, new_note

if TYPE_CHECKING:
    from streams.collecting.http import HttpClient


CONSOLE = Group("Console", sort_key=4)
_SECONDS = 60.0  # for an answer, which reads topics
_MAX_BYTES = 4 << 20  # of an answer


class _Problem(msgspec.Struct):
    detail: str = ""


@Parameter(name="*", group=CONSOLE)
@dataclass(frozen=True, kw_only=True)
class AskedOptions:
    """The console that is asked, and who asks: it verifies that, the command line cannot.

    Args:
        url: Base URL of the console, as its users reach it.
        user: User, for basic authentication.
        password_file: File with the password in its first line.
        token_file: File with a bearer token in its first line.
        allow_http: Send a password or a token by http, too, in clear to another machine.
        ca_file: Certificates (PEM) that sign the server's.
    """

    url: str
    user: str | None = None
    password_file: SecretFile | None = None
    token_file: SecretFile | None = None
    allow_http: Flag = False
    ca_file: InputFile | None = None

    def client(self) -> HttpClient:
        """Return the client. UsageError: options contradict each other, or a file cannot be read."""
        from streams.collecting.http import HttpClient

        return HttpClient(
            user=self.user, password_file=self.password_file, token_file=self.token_file, ca_file=self.ca_file
        )

    def ask(self, path: str, content: Mapping[str, Any] | None = None) -> bytes:
        """Return the answer of the console. content: what is posted; None: it is only read. UsageError: an option is
        wrong, or the console refuses what is asked. MqtwinError: it does not answer.
        """
        from streams.collecting.http import RequestError, check_url

        client = self.client()
        address = check_url(self.url, has_secret=client.has_secret and not self.allow_http).rstrip("/")
        body = None if content is None else msgspec.json.encode(content)
        headers = client.authorisation() | ({} if body is None else {"Content-Type": "application/json"})
        with client.requester(_SECONDS) as requester:
            try:
                method = "GET" if body is None else "POST"
                answer = requester.ask(method, f"{address}{path}", headers, content=body, max_bytes=_MAX_BYTES)
            except RequestError as error:
                raise MqtwinError(f"{address}{path} does not answer: {error}") from None
        if answer.status in {HTTPStatus.OK, HTTPStatus.CREATED} and not answer.problem:
            return answer.body
        try:
            detail = msgspec.json.decode(answer.body, type=_Problem).detail
        except UNREADABLE:
            detail = ""
        text = f"{address}{path} answers {answer.status} {detail or answer.problem or answer.reason}"
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise MqtwinError(text)
        raise UsageError(text if "expected" in text else f"{text}; expected: a console with --actions, and a sign-in")


acts = App(name="acts")

_PATH = "/api/acts"
_LOOK_S = 2.0  # between two looks
_HEX = frozenset("0123456789abcdef")
_MIN_HASH = 12  # digits by which a hash may be named
_Id = Annotated[str, Parameter(name="ID")]
_Hash = Annotated[str, Parameter(name="HASH")]
_log = structlog.get_logger("mqtwin.acts")


@acts.command
def request(
    alert: str,
    action: str,
    /,
    *,
    asked: AskedOptions,
    step: Step = None,
    minutes: Annotated[int, Parameter(validator=Number(gte=1, lte=MAX_MINUTES))] = DEFAULT_MINUTES,
    json_: Flag = False,
) -> None:
    """Request a change that an alert proposes, under the name that the console verifies. Nothing is changed yet.

    Args:
        alert: Id of the alert, its `alert_id`.
        action: Id of the action in its runbook, such as alter-size.
        asked: Console.
        step: Number of the step in the action. Default: the only one that is such a change.
        minutes: Minutes after which it is no longer handed over.
        json_: Print JSON instead of text.
    """
    content = {"alert_id": alert, "action": action, "step": step, "minutes": minutes}
    _show(asked.ask(_PATH, content), as_json=json_)


@acts.command(name="list")
def list_(*, asked: AskedOptions, json_: Flag = False) -> None:
    """List the latest requests, the last first: what, who, its hash, and what became of it.

    Args:
        asked: Console.
        json_: Print JSON instead of text.
    """
    _show(asked.ask(_PATH), as_json=json_)


@acts.command
def approve(id_: _Id, hash_: _Hash, /, *, asked: AskedOptions, json_: Flag = False) -> None:
    """Approve a request of somebody else, under the name that the console verifies.

    Args:
        id_: Id of the request.
        hash_: Hash that was read with it, or its first 12 digits or more: other text has another one.
        asked: Console.
        json_: Print JSON instead of text.
    """
    _post(asked, id_, "approve", hash_, as_json=json_)


@acts.command
def withdraw(id_: _Id, hash_: _Hash, /, *, asked: AskedOptions, json_: Flag = False) -> None:
    """Withdraw a request that was not handed over yet.

    Args:
        id_: Id of the request.
        hash_: Hash that was read with it, or its first 12 digits or more.
        asked: Console.
        json_: Print JSON instead of text.
    """
    _post(asked, id_, "withdraw", hash_, as_json=json_)


@acts.command
def result(
    id_: _Id,
    hash_: _Hash,
    /,
    *,
    asked: AskedOptions,
    status: Literal["ok", "failed", "unknown"],
    comment: str = "",
    json_: Flag = False,
) -> None:
    """Say what became of a request that was handed over and whose result is not known.

    Args:
        id_: Id of the request.
        hash_: Hash that was read with it, or its first 12 digits or more.
        asked: Console.
        status: ok: it has run; failed: it has not.
        comment: What to add.
        json_: Print JSON instead of text.
    """
    _post(asked, id_, "result", hash_, as_json=json_, status=status, text=comment)


@acts.command
def run(
    *,
    exec: Annotated[str, Parameter(negative="")],  # noqa: A002 -- the name of the option
    estate: EstateFile,
    actions: InputFile,
    kafka: KafkaOptions,
    name: str | None = None,
    once: Flag = False,
) -> None:
    """Hand approved requests to a command, one at a time, each at most once, until Ctrl-C or SIGTERM.

    The command has the rights that it needs, mqtwin has none. It ends with 0: ok; with 10: failed, nothing has run;
    with anything else, or not within ten minutes: unknown, which is never repeated. 5 and 30 minutes later what the
    state of the store shows is written, too.

    Args:
        exec: Command to run, with the request as JSON on standard input.
        estate: Estate file (TOML).
        actions: File with the changes that may be requested (TOML), of mode 600.
        kafka: Kafka connection.
        name: Name of this process, the same after a restart. Default: that of this machine.
        once: Look once, and end.
    """
    configure_logging()
    command = Command(exec, COMMAND_S)
    log = ActLog(kafka.client(), kafka.topics)
    runner = Runner(log, command, open_estate(estate), Path(actions), (name or platform.node() or "runner")[:50])
    with until_stopped():
        if once:
            runner.look()
            return
        _log.info("waiting for approved requests", reads=kafka.topics.acts)
        while True:
            _look(runner)
            time.sleep(_LOOK_S)


def _look(runner: Runner) -> None:
    """Look, and go on where Kafka is away for a while. UsageError: what a person has to set right."""
    try:
        runner.look()
    except UsageError:
        raise
    except MqtwinError as error:
        _log.warning("not now", why=str(error))


def _post(asked: AskedOptions, id_: str, what: str, hash_: str, *, as_json: bool, **more: str) -> None:
    """Post what a person says of a request, by its hash."""
    if len(id_) != 16 or not _HEX.issuperset(id_):
        raise UsageError(f"request {id_[:80]}; expected: an id of mqtwin acts list")
    if not (len(hash_) >= _MIN_HASH and _HEX.issuperset(hash_)):
        raise UsageError(f"hash {hash_[:80]}; expected: {_MIN_HASH} digits or more, as mqtwin acts list shows them")
    if len(hash_) < 64:
        known = [own.request for own in _views(asked.ask(_PATH)) if own.request.id == id_]
        if not known or not known[0].sha256.startswith(hash_):
            raise UsageError(f"request {id_[:80]} has another hash; expected: that of mqtwin acts list, read again")
        hash_ = known[0].sha256
    _show(asked.ask(f"{_PATH}/{id_}/{what}", {"sha256": hash_, **more}), as_json=as_json)


def _views(answer: bytes) -> list[ActView]:
    try:
        return msgspec.json.decode(answer, type=list[ActView])
    except UNREADABLE as error:
        raise MqtwinError(f"the console did not answer with requests: {error}") from None


def _show(answer: bytes, *, as_json: bool) -> None:
    views = _views(answer if answer.startswith(b"[") else b"[" + answer + b"]")
    emit(request_document(views), as_json=as_json)


# --- notes on an alert ------------------------------------------------------------------------------------------------


def acted(alert: str, action: str, /, *, kafka: KafkaOptions, who: str | None = None, comment: str = "") -> None:
    """Note that an action of an alert was taken, for all to see; a page of the forecast was useful then.

    Args:
        alert: Id of the alert, its `alert_id`.
        action: Id of the action in its runbook, such as alter-size.
        kafka: Kafka connection.
        who: Who did it. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, ACTED, who, action=action, text=comment)


def acknowledge(alert: str, /, *, kafka: KafkaOptions, who: str | None = None, comment: str = "") -> None:
    """Note that somebody looks after an alert, for all to see; it changes nothing else.

    Args:
        alert: Id of the alert, its `alert_id`.
        kafka: Kafka connection.
        who: Who did it. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, ACKNOWLEDGED, who, text=comment)


def judge(
    alert: str,
    word: Literal["useful", "useless", "none"],
    /,
    *,
    kafka: KafkaOptions,
    who: str | None = None,
    comment: str = "",
) -> None:
    """Say whether a page of the forecast was useful: its store calls sooner, or later, where the next is like it.

    Args:
        alert: Id of the alert, its `alert_id`, of condition full-forecast.
        word: useful, useless, or none, which takes the word back. A later word replaces an earlier one.
        kafka: Kafka connection.
        who: Who says so. Default: the user of this machine.
        comment: What to add.
    """
    _note(kafka, alert, word, who, text=comment)


def _note(
    kafka: KafkaOptions, alert: str, kind: str, who: str | None, *, action: str | None = None, text: str = ""
) -> None:
    configure_logging(level="warning")
    topics, client = kafka.topics, kafka.client()
    now = as_text(round(time.time() * 1e6))
    note = new_note(alert, kind, _user() if who is None else who, now, action=action, text=text)
    alerts = read_noted_alerts(client, topics)
    check_note(note, alerts)
    write_note(client, topics, note)
    tell_store(client, topics, note, alerts[note.alert_id])
    print(printable(f"{note.alert_id} {note.sentence}"))


def _user() -> str:
    """Return the name of this user. UsageError: it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:  # in a container: before Python 3.13 one of the last two
        raise UsageError(f"this user has no name ({error}); expected: --who NAME") from None
