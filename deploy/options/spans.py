"""Options of ``mqtwin import``, ``mqtwin collect`` and ``mqtwin stream`` about OpenTelemetry spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from deploy.options.common import parse_settings

SPANS = Group("OpenTelemetry spans", sort_key=3)


@Parameter(name="*", group=SPANS)
@dataclass(frozen=True, kw_only=True)
class SpanChoices:
    """Facts that spans lack, and whose spans to take."""

    lpar: Annotated[
        tuple[str, ...],
        Parameter(help="LPAR of spans and its queue manager, LPAR=QMGR; may be repeated.", negative=""),
    ] = ()
    spans: Annotated[
        Literal["queue-manager", "application"],
        Parameter(help="Whose spans to take, if applications write spans of the same calls."),
    ] = "queue-manager"
    length: Annotated[
        int | None,
        Parameter(
            help="Bytes of messages whose size is not reported. Default: the mean of the queue.",
            validator=Number(gte=0, lte=104_857_600),
        ),
    ] = None
    late: Annotated[
        float,
        Parameter(
            help="Seconds by which a span may come later than younger ones.", validator=Number(gte=0, lte=86_400)
        ),
    ] = 30.0

    def fields(self) -> dict[str, Any]:
        """Return the fields of `twin.feeds.protocol.FeedOptions`."""
        return {
            "lpars": parse_settings("--lpar", self.lpar),
            "emitter": self.spans,
            "length": self.length,
            "late_s": self.late,
        }
