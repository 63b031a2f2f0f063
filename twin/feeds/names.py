"""Names as sources write them: of stores and their queue managers, command prefixes, message ids.

A command prefix is the word behind the id of a message of MQ for z/OS. It has one to eight characters, of which the
first may be any of . ( * & + - | ! ; $ ) % _ ? ' " = @ # and those that code pages make of them, such as ] and [ [IBM:
MQ 9.4, Defining command prefix strings]. It often ends with the name of its queue manager, of one to four capitals and
digits, but need not. Names of modules have eight letters. A message id has 24 bytes; an event has 48 lower-case
hexadecimal digits. Kafka Connect writes the header JMS_IBM_MQMD_MsgId as text of hexadecimal digits with or without
`ID:`, since 2026 as bytes: raw (ByteArrayConverter) or in Base64 (SimpleHeaderConverter) [IBM: kafka-connect-mq-source,
pull request 183].
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Generator, Iterable, Iterator

from twin.estate import Estate, group_prefix
from twin.estate.model import structures_of
from twin.feeds.intake import Complaint, Intake, PassedOver
from twin.feeds.protocol import FeedOptions

_CONNECTOR = "CSQE"  # CSQE, group, queue manager, 02; both names padded to 4 characters [IBM: MQ, message CSQE005I]
_PAD = "@"
_NAME = re.compile(r"[A-Z][A-Z0-9]{0,3}")
_MARKS = re.compile(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$")
_PAIR = re.compile(r"[A-Z][A-Z0-9]{1,19}\(")  # KEY(VALUE), where a message has no prefix
_NO_PREFIX = re.compile(r"[A-Z]+=|CSQ[A-Z0-9]{5}$|.*[a-z]")  # COUNT=, a module, a word of the text
ID_BYTES = 24  # MQMD MsgId [IBM: MQ, MQMD]
ID_DIGITS = 2 * ID_BYTES
_BASE64_LENGTH = 4 * ID_BYTES // 3
_NO_ID = "0" * ID_DIGITS  # MQMI_NONE


def structures_by_policy_name(estate: Estate | None) -> dict[str, str]:
    """Return the store names of structures by their z/OS names: the group, padded to 4 with @, and the name in MQ."""
    names = {}
    for store in structures_of(estate.stores.values()) if estate is not None else ():
        names[store.name.replace("/", "")] = store.name
        names[store.policy_name] = store.name
    return names


def store_of_policy_name(name: str, groups: Iterable[str]) -> str | None:
    """Return the store name of a structure of one of the groups by its z/OS name; None if it is of no such group."""
    structure = name[len(_PAD * 4) :]
    if not structure:
        return None
    return next((f"{group}/{structure}" for group in groups if name.startswith(group_prefix(group))), None)


def groups_of(estate: Estate | None) -> set[str]:
    """Return the queue-sharing groups of an estate."""
    configs = estate.queue_managers.values() if estate is not None else ()
    return {config.queue_sharing_group for config in configs if config.queue_sharing_group}


def parse_connector(text: str) -> tuple[str, str] | None:
    """Return (group, queue manager) of a connector's name; None if it is not a connector of MQ."""
    if len(text) < 12 or not text.startswith(_CONNECTOR):
        return None
    group, qmgr = text[4:8].rstrip(_PAD + " "), text[8:12].rstrip(_PAD + " ")
    return (group, qmgr) if group and qmgr else None


def member_of(estate: Estate | None, store: str) -> str | None:
    """Return the first queue manager of a store; None if the estate lacks it."""
    config = estate.stores.get(store) if estate is not None else None
    return min(config.queue_managers, default=None) if config is not None else None


def reporter_of(estate: Estate | None, store: str, qmgr: str) -> str:
    """Return a queue manager that may report a store, for data of z/OS that name none (`qmgr` "") or another one."""
    config = estate.stores.get(store) if estate is not None else None
    return qmgr if config is None or qmgr in config.queue_managers else min(config.queue_managers, default=qmgr)


def without_measurement(intake: Intake, name: str, time: int) -> Iterator[PassedOver]:
    """Count a coupling facility that is not measured: one that the estate lacks, or has no structure on."""
    if intake.estate is not None and name in intake.estate.stores:
        yield PassedOver("coupling facility without a structure of the estate", name)
    elif intake.estate is not None:
        intake.note_unknown("", time, store=name)


def without_prefix(head: str) -> tuple[str, str]:
    """Return the command prefix of a message, "" if it has none, and the rest of its first line."""
    prefix, _, rest = head.partition(" ")
    if _PAIR.match(prefix) or _NO_PREFIX.match(prefix):
        return "", head
    return prefix, rest


class CommandPrefixes:
    """Queue managers by command prefix: those that the user names, that the text shows, else those of the estate."""

    def __init__(self, estate: Estate | None, options: FeedOptions) -> None:
        self._estate = estate
        self._known = dict(options.prefixes)
        self._assumed: dict[str, str] = {}  # queue manager of a prefix that nothing has shown

    def learn(self, prefix: str, qmgr: str, place: str) -> Iterator[Complaint]:
        """Keep the queue manager of a prefix that a message shows. What the user says counts more."""
        if not prefix or not qmgr or prefix in self._known:
            return
        self._known[prefix] = qmgr
        earlier = self._assumed.get(prefix, qmgr)
        if earlier != qmgr:
            text = f"the command prefix {prefix} was taken for {earlier} before; expected: --prefix '{prefix}={qmgr}'"
            yield Complaint("no-prefix", place, text)

    def qmgr_of(self, prefix: str, current: str | None, place: str) -> Generator[Complaint, None, str | None]:
        """Return the queue manager of a prefix; None, with a complaint, if it is not known."""
        if not prefix:
            return current
        if prefix in self._known:
            return self._known[prefix]
        estate = self._estate
        name = _MARKS.sub("", prefix)
        if estate is not None:
            known = next((own for own in (prefix, name) if own in estate.queue_managers), current)
            if known:
                return known
        elif not _NAME.fullmatch(name) and current:
            return current
        example = min(estate.queue_managers, default="QM01") if estate is not None else "QM01"
        is_name = _NAME.fullmatch(name) is not None
        if (estate is not None or not is_name) and prefix not in self._assumed:
            what = f"is taken for {name}, which the estate lacks" if is_name else "names no queue manager"
            text = f"the command prefix {prefix} {what}; expected: --prefix '{prefix}={example}'"
            yield Complaint("no-prefix", place, text)
        self._assumed[prefix] = name if is_name else ""
        return name if is_name else None


def is_no_message_id(text: str) -> bool:
    """Return True for MQMI_NONE as digits: the message had no id."""
    return text.removeprefix("ID:") == _NO_ID


def message_id(value: str | bytes) -> str | None:
    """Return a message id as events have it; None for MQMI_NONE and for anything else than a message id. `value`: 24
    bytes, 48 hexadecimal digits with or without `ID:`, or 32 characters of Base64; text in quotes likewise. Raw bytes
    that were decoded with `surrogateescape` are bytes again.
    """
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    if len(raw) != ID_BYTES:
        text = raw.decode("latin-1").strip().strip('"').removeprefix("ID:")
        try:
            if len(text) == ID_DIGITS:
                raw = binascii.unhexlify(text)
            elif len(text) == _BASE64_LENGTH:
                raw = base64.b64decode(text, validate=True)
            else:
                return None
        except ValueError:
            return None
    digits = raw.hex()
    return None if digits == _NO_ID or len(raw) != ID_BYTES else digits
