"""MQSC words that an estate uses: verbs, objects, synonyms and attributes.

Sources: [IBM: MQ 9.3, MQSC command and object synonyms, q085130_], [IBM: MQ 9.2 and 9.4, DEFINE and ALTER CFSTRUCT
(q085510_, q085160_), QLOCAL (q085710_, q085350_), QALIAS (q085700_), STGCLASS (q085750_), PSID (q085680_, q085310_)].
Synonyms are not minimum strings: DEFI is no synonym of DEFINE, and DELETE has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twin.estate.attributes import DS_BLOCKS, MAX_DEPTH, QUEUE_NAME, STORAGE_CLASS_NAME, STRUCTURE_NAME
from twin.estate.checks import Check, digits, mapped, word_set
from twin.estate.model import QUEUE_FILE_MAX_SIZE
from twin.units import KIB, MIB

VERBS = word_set(
    "ALTER ARCHIVE BACKUP CLEAR DEFINE DELETE DISPLAY END EXIT MOVE PING PURGE QUIT RECOVER REFRESH RESET RESOLVE"
    " RESUME RVERIFY SET START STOP SUSPEND"
)
VERB_SYNONYMS = {
    "ALT": "ALTER",
    "ARC": "ARCHIVE",
    "DEF": "DEFINE",
    "DIS": "DISPLAY",
    "REC": "RECOVER",
    "REF": "REFRESH",
    "RES": "RESOLVE",
    "STA": "START",
}
OBJECT_SYNONYMS = {"QL": "QLOCAL", "QA": "QALIAS", "QR": "QREMOTE", "STC": "STGCLASS"}

SKIPPED_OBJECTS = word_set(
    "APPL AUTHINFO AUTHREC BP BUFFPOOL CHANNEL CHL CHLAUTH CLUSTER COMMINFO ENTAUTH LISTENER LSTR MAXSMSGS"
    " LOG NAMELIST NL POLICY PRO PROC PROCESS PUBSUB QM QMGR QMODEL SEC SECURITY SERVICE SMDS SUB SYSTEM TOPIC TPC"
    " TRACE"
)
ZOS_ONLY = frozenset(("CFSTRUCT", "STGCLASS", "PSID"))


def _blank_or(check: Check) -> Check:
    """Return a check that converts a blank value to None."""
    return lambda value: check(value) if value else None


def _times(factor: int, low: int, high: int, unit: str) -> Check:
    """Return a check for digits with a unit letter, converted to bytes: OFFLD1SZ(32K)."""
    number = digits(low, high)

    def check(value: str) -> int:
        """Return digits with the unit in bytes. ValueError: others, or out of bounds."""
        try:
            converted: int = number(value.removesuffix(unit) if value.endswith(unit) else "") * factor
        except ValueError:
            raise ValueError(f"must be {low}{unit} to {high}{unit}") from None
        return converted

    return check


def _queue_file_size(value: str) -> int:
    """Convert MAXFSIZE, DEFAULT or megabytes, to bytes [IBM: MQ 10.0, Modifying queue files]."""
    if value == "DEFAULT":
        return QUEUE_FILE_MAX_SIZE
    size: int = _times(MIB, 1, 999_999_999, "")(value)
    return size


_YES_NO = mapped({"YES": True, "NO": False})

Reading = Mapping[str, tuple[str, Check]]  # keyword -> attribute of the estate, check


@dataclass(frozen=True, slots=True)
class ObjectWords:
    """Words of a kind of object."""

    space: str  # "queue", "structure", "storage_class" or "page_set"
    name: Check  # of the object's name
    read: Reading
    valid: frozenset[str]  # other keywords, without effect on storage
    like: str = ""  # name of the default LIKE object


def _page_set_number(value: str) -> str:
    """Convert the number of a page set: 04 is page set 4."""
    return str(digits(0, 99)(value))


_QUEUE_WORDS = word_set(
    "ACCTQ BOQNAME BOTHRESH CAPEXPRY CLCHNAME CLUSNL CLUSTER CLWLPRTY CLWLRANK CLWLUSEQ CMDSCOPE CUSTOM DEFBIND"
    " DEFPRESP DEFPRTY DEFPSIST DEFREADA DEFSOPT DEFTYPE DESCR DISTL FORCE GET HARDENBO IMGRCOVQ INDXTYPE INITQ LIKE"
    " MONQ MSGDLVSQ NOHARDENBO NOPURGE NOREPLACE NOSHARE NOTRIGGER NPMCLASS OTELPCTL OTELTRAC PROCESS"
    " PROPCTL PURGE PUT QDEPTHHI QDEPTHLO QDPHIEV QDPLOEV QDPMAXEV QSGDISP QSVCIEV QSVCINT REPLACE RETINTVL RNAME"
    " RQMNAME SCOPE SHARE STATQ STREAMQ STRMQOS TRIGDATA TRIGDPTH TRIGGER TRIGMPRI TRIGTYPE USAGE XMITQ"
)

OBJECTS: Mapping[str, ObjectWords] = {
    "QLOCAL": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            "CFSTRUCT": ("structure", _blank_or(STRUCTURE_NAME)),
            "STGCLASS": ("storage_class", _blank_or(STORAGE_CLASS_NAME)),
            "MAXFSIZE": ("max_size", _queue_file_size),
            "DEFPSIST": ("default_persistent", _YES_NO),
            "MAXMSGL": ("max_length", digits(0, 104_857_600)),
            "MAXDEPTH": ("max_depth", digits(0, MAX_DEPTH)),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.LOCAL.QUEUE",
    ),
    "QALIAS": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            "TARGET": ("target", _blank_or(QUEUE_NAME)),
            "TARGQ": ("target", _blank_or(QUEUE_NAME)),  # older synonym of TARGET
            "TARGTYPE": ("target_type", mapped({"QUEUE": "QUEUE", "TOPIC": "TOPIC"})),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.ALIAS.QUEUE",
    ),
    "QREMOTE": ObjectWords(
        "queue",
        QUEUE_NAME,
        {
            "RQMNAME": ("remote_queue_manager", _blank_or(QUEUE_NAME)),
            "XMITQ": ("transmission_queue", _blank_or(QUEUE_NAME)),
        },
        _QUEUE_WORDS,
        like="SYSTEM.DEFAULT.REMOTE.QUEUE",
    ),
    "CFSTRUCT": ObjectWords(
        "structure",
        STRUCTURE_NAME,
        {
            "CFLEVEL": ("cf_level", digits(1, 5)),
            "OFFLOAD": ("offload", mapped({"SMDS": "SMDS", "DB2": "DB2", "NONE": "NONE"})),
            **{f"OFFLD{n}TH": (f"offld{n}_th", digits(0, 100)) for n in (1, 2, 3)},
            **{f"OFFLD{n}SZ": (f"offld{n}_sz", _times(KIB, 0, 64, "K")) for n in (1, 2, 3)},
            "DSBLOCK": ("ds_block", mapped(DS_BLOCKS)),
            "DSEXPAND": ("ds_expand", _YES_NO),
            "DSGROUP": ("ds_group", str),
        },
        word_set("DESCR LIKE REPLACE NOREPLACE CFCONLOS RECOVER RECAUTO DSBUFS"),
    ),
    "STGCLASS": ObjectWords(
        "storage_class",
        STORAGE_CLASS_NAME,
        {"PSID": ("page_set", digits(0, 99))},
        word_set("CMDSCOPE QSGDISP DESCR LIKE REPLACE NOREPLACE PASSTKTA XCFGNAME XCFMNAME"),
        like="SYSTEMST",
    ),
    "PSID": ObjectWords(
        "page_set",
        _page_set_number,
        {
            "BUFFPOOL": ("buffer_pool", digits(0, 99)),
            "EXPAND": ("expand", mapped({"SYSTEM": "SYSTEM", "USER": "USER", "NONE": "NONE"})),
        },
        word_set("DSN ENCRYPT"),
    ),
}
