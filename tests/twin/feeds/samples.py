"""A sample page of each format, made up by its documented or real shape. Fuzz tests mutate them."""

from __future__ import annotations

import json

from tests.cases import FEEDS
from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.rounds import DEFINITIONS, LEVELS
from tests.twin.feeds.smf_made import data_set, facility, queue_statistics, record, section, segmented
from tests.twin.feeds.smf_made import structure as coupling_structure
from twin.feeds import FORMATS
from twin.feeds.smf_layout import QIS1, QMST, QPST, WQ, WTAS

DISPLAYS = (FEEDS / "display" / "definitions" / "in").read_text(encoding="utf-8")
USAGE_ROWS = """\
Page Buffer   Total   Unused  Persistent NonPersist Expansion    Encr-
 set  pool    pages    pages  data pages data pages        count   ypt
_  0     0     1078     1045          33          0 USER       0    NO
_  4     3     1078     1070           5          3 SYSTEM     2    NO
 End of page set report"""

STATUS_PAIRS = """\
CFSTATUS(APP1)
TYPE(SUMMARY)
CFTYPE(APPL)
STATUS(ACTIVE)
SIZEMAX(1048576)
SIZEUSED(17)
ENTSMAX(14599)
ENTSUSED(6372)
OFFLDUSE(SMDS)
 END CFSTATUS DETAILS"""

SYSPRINT = f"""\
CSQM293I QM01 CSQMDRTC 1 CFSTATUS FOUND MATCHING REQUEST CRITERIA
CSQM201I QM01 CSQMDRTC  DISPLAY CFSTATUS DETAILS
{STATUS_PAIRS}
CSQ9022I QM01 CSQMDRTC ' DISPLAY CFSTATUS' NORMAL COMPLETION
CSQI010I QM01 Page set usage ...
{USAGE_ROWS}
CSQI065I QM01 Buffer pool attributes ...
_      0      50000      49998          99  4KB        BELOW
CSQE280I QM01 SMDS usage ...
Application  Offloaded  Total  Total data  Used data  Used
structure    messages   blocks blocks      blocks     part
_APP1              123   9999        9998         12    0%
 End of SMDS report
"""

RUNMQSC = """\
5724-H72 (C) Copyright IBM Corp. 1994, 2026.
Starting MQSC for queue manager QMD1.


     1 : DISPLAY QSTATUS(*) TYPE(QUEUE) ALL
AMQ8450I: Display queue status details.
   QUEUE(INVOICES)                         TYPE(QUEUE)
   CURDEPTH(17)                            CURFSIZE(3)
   CURMAXFS(2088960)                       IPPROCS(0)
   LPUTTIME(12.00.01)                      QTIME( , )
AMQ8450I: Display queue status details.
   QUEUE(ORDERS)                           TYPE(QUEUE)
   CURDEPTH(0)                             CURFSIZE(1)
   CURMAXFS(2088960)                       MSGAGE( )
     2 : DISPLAY QSTATUS(OTHER)
One MQSC command read.
"""

POLICY = """\
IXC360I  07.58.51  DISPLAY XCF 581
STRNAME: QSG1APP1
 STATUS: NOT ALLOCATED
 POLICY INFORMATION:
  POLICY SIZE    : 2048 M
  POLICY INITSIZE: 1536 M
  POLICY MINSIZE : 1152 M
  FULLTHRESHOLD  : 85
  ALLOWAUTOALT   : YES
  REBUILD PERCENT: N/A
CSQE005I QM01 CSQECONN Structure APP1 connected as
CSQEQSG1QM0102, version=DE928A95A9012381 00020001
"""

# Made up, in the layout that IBM documents for IXC360I; its lines behind COUPLING FACILITY are in no stored document.
ALLOCATED = """\
IXC360I  08.14.02  DISPLAY XCF 593
STRNAME: QSG1APP1
 STATUS: ALLOCATED
         POLICY CHANGE PENDING - CHANGE
 EVENT MANAGEMENT: MESSAGE-BASED
 TYPE: SERIALIZED LIST
 POLICY INFORMATION:
  POLICY SIZE    : 2 G
  POLICY INITSIZE: 1536 M
  POLICY MINSIZE : 1152 M
  SCMMAXSIZE     : 8 G
  SCMALGORITHM   : KEYPRIORITY1
  FULLTHRESHOLD  : 85
  ALLOWAUTOALT   : NO
  REBUILD PERCENT: N/A
 PENDING POLICY INFORMATION:
  POLICY SIZE    : 4 G
  POLICY INITSIZE: 4 G

 ALLOCATION TIME: 11/20/2026 06:02:11
 CFNAME         : CF01
 COUPLING FACILITY: 003932.IBM.02.000000012345
STRNAME: QSG1APP2
 STATUS: NOT ALLOCATED
 POLICY INFORMATION:
  POLICY SIZE    : 512 M
  FULLTHRESHOLD  : 80
  ALLOWAUTOALT   : YES
CSQE005I QM01 CSQECONN Structure APP1 connected as
CSQEQSG1QM0102, version=DE928A95A9012381 00020001
"""


def numbered(text: str, number: int = 105) -> str:
    """Return a message as in a job log: times, and the number of the message before its further lines."""
    first, *others = text.splitlines()
    lines = ["17.43.53 STC08037  ---- MONDAY,     29 JAN 2024 ----", f"17.43.54 STC08037  +{first}  {number}"]
    return "\n".join([*lines, *(f"   {number}             {line}" for line in others)]) + "\n"


def responses(text: str) -> str:
    """Return a text as OPERLOG shows it after a command extension."""
    return "".join(f"RESPONSE=MVS1      {line}\n" for line in text.splitlines())


def syslog(text: str, number: int = 105) -> str:
    """Return a message as in SYSLOG."""
    first, *others = text.splitlines()
    line = f"N 0000000 MVS1     24029 17:43:54.12 STC08037 00000090  {first}  {number}"
    return "\n".join([line, *(f"D         {number} 00000090  {line}" for line in others)]) + "\n"


REST = json.dumps(
    {
        "commandResponse": [
            {
                "completionCode": 0,
                "reasonCode": 0,
                "parameters": {"cfstatus": "APP1", "type": "SUMMARY", "sizemax": 1048576, "entsmax": 10, "entsused": 4},
            },
            {"completionCode": 0, "reasonCode": 0, "parameters": {"queue": "ORDERS", "curdepth": 7}},
            {
                "completionCode": 0,
                "reasonCode": 0,
                "parameters": {"queue": "NEW", "type": "QLOCAL", "cfstruct": "APP1"},
            },
        ],
        "overallCompletionCode": 0,
        "overallReasonCode": 0,
    }
)


def envelope(event_type: int, data: dict[str, object], **others: object) -> dict[str, object]:
    """Return an event message as amqsevt writes it."""
    return {
        "eventSource": {"objectName": "SYSTEM.ADMIN.QUEUE", "objectType": "Queue", "queueMgr": "QMD1"},
        "eventType": {"name": "Type", "value": event_type},
        "eventReason": {"name": "None", "value": 0},
        "eventCreation": {"timeStamp": "2026-11-20T12:00:00Z", "epoch": 1_795_176_000},
        "eventData": {"queueMgrName": "QMD1", **data},
        **others,
    }


STATISTICS = envelope(
    165,
    {
        "startDate": "2026-11-20",
        "startTime": "11.30.00",
        "endDate": "2026-11-20",
        "endTime": "12.00.00",
        "objectCount": 1,
        "queueStatisticsData": [
            {
                "queueName": "INVOICES",
                "queueMinDepth": 0,
                "queueMaxDepth": 60,
                "avgQueueTime": [0, "-1"],
                "puts": [60, 40],
                "put1s": [10, 0],
                "putBytes": [7_003, "4000"],
                "gets": [50, 30],
                "getBytes": [5_000, 3_000],
                "msgsNotQueued": 14,
                "msgsExpired": 3,
                "msgsPurged": 2,
            }
        ],
    },
)


def operation(name: str, time_us: int = 0, **others: object) -> dict[str, object]:
    """Return an operation of an activity trace, of a call that succeeded; times count from 2026-11-20T12:00:00Z."""
    return {
        "operationId": name,
        "threadId": 3,
        "highresTime": 1_795_176_000_000_000 + time_us,
        "compCode": {"name": "OK", "value": 0},
        "reasonCode": {"name": "None", "value": 0},
    } | others


def put(time_us: int = 0, **others: object) -> dict[str, object]:
    """Return a put of the message 01.. in syncpoint."""
    usual = {"objectName": "ORDERS", "resolvedQueueName": "ORDERS", "msgLength": 2048, "putOptions": "0x00002042 "}
    usual |= {"priority": 4, "persistence": 1, "msgId": f"{1:048X}"}
    return operation("Put", time_us, **(usual | others))


def get(time_us: int = 0, **others: object) -> dict[str, object]:
    """Return a get of the message 01.. in syncpoint."""
    usual = {"objectName": "ORDERS", "msgLength": 2048, "getOptions": "0x00002003 ", "msgId": f"{1:048X}"}
    return operation("Get", time_us, **(usual | others))


def activity(*operations: dict[str, object]) -> dict[str, object]:
    """Return an activity trace message."""
    return envelope(209, {"applName": "app", "connectionId": "C1", "activityTrace": list(operations)})


QUEUE_FULL = envelope(45, {"baseObjectName": "ORDERS"}, eventReason={"name": "Queue Full", "value": 2053})


def json_text(*messages: dict[str, object]) -> bytes:
    """Return messages as `amqsevt -o json` writes them, one after the other."""
    return "\n".join(json.dumps(message, indent=2) for message in messages).encode()


TITLE = "C O U P L I N G   F A C I L I T Y   A C T I V I T Y"
IN_USE = "                                           12        60      N/A      N/A\n"
RMF_PRINT = f"""\
1                                          {TITLE}
                                                                                                             PAGE   1
    z/OS V3R1              SYSPLEX PLEX1               DATE 11/20/2026           INTERVAL 015.00.000
                           RPT VERSION V3R1 RMF        TIME 12.45.00             CYCLE 01.000 SECONDS
-------------------------------------------------------------------------------------------------------------------
 COUPLING FACILITY NAME = CF01
-------------------------------------------------------------------------------------------------------------------
                                      COUPLING  FACILITY  USAGE  SUMMARY
-------------------------------------------------------------------------------------------------------------------
 STRUCTURE SUMMARY
-------------------------------------------------------------------------------------------------------------------
                                    % OF           % OF    % OF   AVG    LST/DIR  DATA      LOCK     DIR REC/
       STRUCTURE            ALLOC   CF     #       ALL     CF     REQ/   ENTRIES  ELEMENTS  ENTRIES  DIR REC
 TYPE  NAME     STATUS CHG  SIZE    STOR   REQ     REQ     UTIL   SEC    TOT/CUR  TOT/CUR   TOT/CUR  XI'S
 LIST  QSG1APP1 ACTIVE         1M   0.0    32400    5.4    2.0   36.00       100       600      N/A      N/A
{IN_USE}       QSG1APP2 ACTIVE X       2M   0.0        0    0.0    0.0    0.00      1.2K      7.2K      N/A      N/A
                                            1         1      N/A      N/A
 LOCK  IRLMLOCK1 ACTIVE       32M   0.1      100    0.1    0.0    0.00         0         0    4194K      N/A
                                            0         0       12      N/A
"""


SMF = (
    record(201, [section(QIS1, 104, page_set=4, buffer_pool=3, total=100, unused=90, persistent=10)])
    + record(2, [data_set(blocks_total=100, blocks_used=30, blocks_free=70)])
    + record(215, [section(QPST, 104, pool=3, buffers=50_000, stealable=10_000)])
    + segmented(
        record(216, [queue_statistics(fast_puts=4, input_handles=1), queue_statistics(queue="OTHER")]), 200, 400
    )
    + record(1, [section(WTAS, 2800, start=1), section(WQ, 2800, base_name="ORDERS")], smf_type=116)
    + record(2, [section(QMST, 328, puts=7)])
    + facility([coupling_structure("QSG1APP1")])
)

PAGES: dict[str, tuple[bytes, ...]] = {
    "smf": (SMF,),
    "display": (
        SYSPRINT.encode(),
        RUNMQSC.encode(),
        POLICY.encode(),
        numbered(SYSPRINT).encode(),
        responses(SYSPRINT).encode(),
        syslog(POLICY).encode(),
        SYSPRINT.encode("cp037"),
    ),
    "rest": (REST.encode(), *(data for _, _, data in (*LEVELS, *DEFINITIONS))),
    "amqsevt": (
        json_text(STATISTICS, QUEUE_FULL, activity(put(), get(1), operation("Cmit", 2))),
        json.dumps([STATISTICS, activity(put())]).encode(),
    ),
    "rmf": (RMF_PRINT.encode(),),
    **{name: tuple(pages) for name, pages in LIVE_PAGES.items() if FORMATS[name].is_file},
}
