"""Pages of rounds of the REST interface, made up by what IBM documents, for tests."""

from __future__ import annotations

import json
from typing import Any

from twin.feeds import Page

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
SECOND = 1_000_000
_URL = "https://mqweb.site:9443/ibmmq/rest/v3/admin/action/qmgr/{}/mqsc"
_USAGE = """\
CSQI010I {} Page set usage ...
Page Buffer   Total   Unused  Persistent NonPersist Expansion    Encr-
 set  pool    pages    pages  data pages data pages        count   ypt
_  4     3     1078     1070           5          3 SYSTEM     2    NO
 End of page set report
CSQE280I {} SMDS usage ...
Application  Offloaded  Total  Total data  Used data  Used
structure    messages   blocks blocks      blocks     part
_APP1              123   9999        9998         12    0%
 End of SMDS report
CSQE285I {} SMDS buffer usage ...
Application  Block  --- Buffers ---------------  Reads  Lowest  Wait
structure    size   Total In use  Saved   Empty  saved  free    rate
_APP1         256K    100      5     10      85     7%     80     0%
 End of SMDS buffer report
CSQ9022I {} CSQIDUSE ' DISPLAY USAGE' NORMAL COMPLETION"""


def body(*parameters: dict[str, Any], reason: int = 0) -> bytes:
    """Return an answer to runCommandJSON. reason: reason code of a further response that failed; 0: there is none."""
    responses = [{"completionCode": 0, "reasonCode": 0, "parameters": own} for own in parameters]
    if reason:
        failed = {"completionCode": 2, "reasonCode": reason, "message": ["CSQM297I QM01 NO OBJECTS FOUND"]}
        responses.append(failed)
    overall = {"overallCompletionCode": 2 if reason else 0, "overallReasonCode": 3008 if reason else 0}
    return json.dumps({"commandResponse": responses, **overall}).encode()


def text_body(*lines: str, return_code: str = "00000000", reason: str = "00000000") -> bytes:
    """Return an answer to runCommand of a command server on z/OS."""
    codes = f"CSQN205I   COUNT={len(lines) + 1:>8}, RETURN={return_code}, REASON={reason}"
    response = {"completionCode": 0, "reasonCode": 0, "text": [codes, *lines]}
    whole = {"commandResponse": [response], "overallCompletionCode": 0, "overallReasonCode": 0}
    return json.dumps(whole).encode()


def status(queue: str = "ORDERS", **parameters: Any) -> dict[str, Any]:
    """Return the state of a queue as DISPLAY QSTATUS ALL on z/OS shows it, with MONQ."""
    usual = {
        "queue": queue,
        "type": "QUEUE",
        "qsgdisp": "SHARED",
        "curdepth": 12,
        "ipprocs": 0,
        "opprocs": 0,
        "uncom": "NO",
        "monq": "LOW",
        "msgage": 17,
        "qtime": "1234, 1200",
        "lgetdate": "2026-11-20",
        "lgettime": "11.30.00",
        "lputdate": "2026-11-20",
        "lputtime": "11.59.58",
    }
    return usual | parameters


def structure_status(**parameters: Any) -> dict[str, Any]:
    """Return the state of a structure as DISPLAY CFSTATUS TYPE(SUMMARY) shows it."""
    usual = {
        "cfstatus": "APP1",
        "type": "SUMMARY",
        "cftype": "APPL",
        "status": "ACTIVE",
        "offlduse": "SMDS",
        "sizemax": 1048576,
        "sizeused": 17,
        "entsmax": 14599,
        "entsused": 6372,
        "failtime": "",
        "faildate": "",
    }
    return usual | parameters


def structure(**parameters: Any) -> dict[str, Any]:
    """Return the definition of a structure as DISPLAY CFSTRUCT ALL shows it."""
    usual = {
        "cfstruct": "APP1",
        "cflevel": 5,
        "descr": "",
        "recover": "YES",
        "offload": "SMDS",
        "offld1th": 70,
        "offld1sz": "32K",
        "offld2th": 80,
        "offld2sz": "4K",
        "offld3th": 90,
        "offld3sz": "0K",
        "dsgroup": "QSG1.*.APP1",
        "dsblock": "256K",
        "dsbufs": 100,
        "dsexpand": "YES",
    }
    return usual | parameters


def usage(qmgr: str) -> bytes:
    """Return the answer to DISPLAY USAGE TYPE(ALL)."""
    return text_body(*_USAGE.replace("{}", qmgr).splitlines())


def pages(*answers: tuple[str, str, bytes], start: int = NOON, is_last: bool = True) -> list[Page]:
    """Return the pages of a round, a second apart.

    Args:
        answers: queue manager, command and body of each.
        start: time of the first page, microseconds since 1970.
        is_last: the last one says that it is.
    """
    result = []
    for number, (qmgr, command, data) in enumerate(answers):
        headers = {"mqweb.round": str(start), "mqweb.command": command, "mqweb.qmgr": qmgr}
        if is_last and number == len(answers) - 1:
            headers["mqweb.last"] = "1"
        result.append(Page(data, _URL.format("QM01"), start + number * SECOND, headers))
    return result


ENTRIES, DATA_SETS, QUEUES, USAGE = (
    "DISPLAY CFSTATUS(*) TYPE(SUMMARY)",
    "DISPLAY CFSTATUS(*) TYPE(SMDS)",
    "DISPLAY QSTATUS(*) TYPE(QUEUE) ALL",
    "DISPLAY USAGE TYPE(ALL)",
)
CONNECTIONS, STRUCTURES, CLASSES, LOCAL = (
    "DISPLAY SMDSCONN(*) CFSTRUCT(*)",
    "DISPLAY CFSTRUCT(*) ALL",
    "DISPLAY STGCLASS(*) ALL",
    "DISPLAY QLOCAL(*) CFSTRUCT STGCLASS MAXDEPTH",
)
LEVELS = (  # of a group of two, of which QM01 has a page set
    ("QM01", ENTRIES, body(structure_status())),
    (
        "QM01",
        DATA_SETS,
        body({"cfstatus": "APP1", "type": "SMDS", "smds": "QM01", "status": "ACTIVE", "access": "ENABLED"}),
    ),
    ("QM01", QUEUES, body(status(), status("LOCAL", qsgdisp="QMGR", curdepth=5, ipprocs=1))),
    ("QM01", USAGE, usage("QM01")),
    (
        "QM01",
        CONNECTIONS,
        body(
            {
                "smdsconn": "QM01",
                "cfstruct": "APP1",
                "openmode": "UPDATE",
                "status": "OPEN",
                "avail": "NORMAL",
                "expandst": "NORMAL",
            }
        ),
    ),
    ("QM02", QUEUES, body(status(opprocs=3, lgettime="11.45.00", msgage=18))),
    ("QM02", USAGE, text_body("CSQI010I QM02 Page set usage ...", " End of page set report")),
)
DEFINITIONS = (
    ("QM01", "DISPLAY QMGR ALL", body({"qmname": "QM01", "platform": "MVS", "cmdlevel": 944, "qsgname": "QSG1"})),
    ("QM01", STRUCTURES, body(structure())),
    ("QM01", CLASSES, body({"stgclass": "DEFAULT", "psid": 4, "qsgdisp": "QMGR"})),
    (
        "QM01",
        LOCAL,
        body(
            {
                "queue": "ORDERS",
                "type": "QLOCAL",
                "qsgdisp": "SHARED",
                "cfstruct": "APP1",
                "stgclass": "DEFAULT",
                "maxdepth": 100000,
            },
            {
                "queue": "LOCAL",
                "type": "QLOCAL",
                "qsgdisp": "QMGR",
                "cfstruct": "",
                "stgclass": "DEFAULT",
                "maxdepth": 5000,
            },
        ),
    ),
)
