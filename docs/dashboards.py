"""``python -m docs.dashboards``: write the Grafana dashboards of ``deploy/grafana/dashboards``.

For maintainers, after a change of metrics or panels: it needs grafana-foundation-sdk, a development dependency. The
dashboards are committed; a test makes them again and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.builders.common import GraphThresholdsStyleConfig, VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    LineInterpolation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from twin.base.outputs import write_output
from twin.records import URGENCIES

OUT = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"
TAG = "mqtwin"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_RATIO, _SECONDS, _BYTES, _SHORT = "percentunit", "s", "bytes", "short"
_COLOURS = ("green", "blue", "orange", "red", "red")
_URGENCY = ValueMap(
    {
        str(number): ValueMappingResult(text=word, color=colour)
        for number, (word, colour) in enumerate(zip(("none", *URGENCIES), _COLOURS, strict=True))
    }
)
_YES = ValueMap({"0": ValueMappingResult(text="no", color="red"), "1": ValueMappingResult(text="yes", color="green")})


@dataclass(frozen=True, slots=True)
class Graph:
    """A time series panel.

    Args:
        title: title of the panel.
        queries: PromQL by legend.
        unit: Grafana's name of the unit.
        limit: a line at this value, such as full; None: no line.
        words: words of the values, which are steps; None: they are numbers.
        is_signed: values may be negative; otherwise the axis begins at 0.
        text: why there may be no data; "": there always is.
    """

    title: str
    queries: dict[str, str]
    unit: str = _SHORT
    limit: float | None = None
    words: ValueMap | None = None
    is_signed: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A panel with a single number. red_from: value from which it is red; words: instead of a number."""

    title: str
    query: str
    unit: str = _SHORT
    red_from: float | None = None
    words: ValueMap | None = None
    height: int = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """A table panel, one row a series. columns: headings by label, or by "Value"; words, text: as of a graph."""

    title: str
    query: str
    columns: dict[str, str]
    words: ValueMap | None = None
    width: int = 24
    text: str = ""


Panel = Graph | Figure | Listing


def _target(query: str, legend: str, number: int) -> Dataquery:
    return Dataquery().expr(query).legend_format(legend).ref_id(chr(ord("A") + number)).datasource(_SOURCE)


def _steps(red_from: float | None) -> ThresholdsConfig:
    steps = [Threshold(value=None, color="green")]
    if red_from is not None:
        steps.append(Threshold(value=red_from, color="red"))
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _graph(panel: Graph) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    built = timeseries.Panel().title(panel.title).description(panel.text).datasource(_SOURCE).unit(panel.unit)
    if not panel.is_signed:
        built = built.min(0)
    built = built.legend(legend).span(12).height(8).thresholds(_steps(panel.limit))
    if panel.limit is not None:
        style = GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
        built = built.thresholds_style(style).axis_soft_max(panel.limit)
    elif panel.unit == _SHORT:
        built = built.axis_soft_max(1)  # nothing at all is a line at the bottom, not an axis of thousandths
    if panel.words is not None:
        built = built.mappings([panel.words]).max(len(panel.words.options) - 1).decimals(0)
        built = built.line_interpolation(LineInterpolation.STEP_AFTER)
    for number, (name, query) in enumerate(panel.queries.items()):
        built = built.with_target(_target(query, name, number))
    return built


def _figure(panel: Figure) -> stat.Panel:
    built = stat.Panel().title(panel.title).datasource(_SOURCE).unit(panel.unit).span(4).height(panel.height)
    if panel.words is not None:
        built = built.mappings([panel.words])
    return built.thresholds(_steps(panel.red_from)).with_target(_target(panel.query, "", 0).instant())


def _listing(panel: Listing) -> table.Panel:
    """Return a table of the named columns only, in their order; the query has no other labels."""
    target = _target(panel.query, "", 0).instant().format(PromQueryFormat.TABLE)
    hidden = {"Time", "Value"} - panel.columns.keys()
    columns = {
        "excludeByName": dict.fromkeys(sorted(hidden), True),
        "indexByName": {name: number for number, name in enumerate(panel.columns)},
        "renameByName": panel.columns,
    }
    built = table.Panel().title(panel.title).description(panel.text).datasource(_SOURCE).span(panel.width).height(8)
    if panel.words is not None:
        built = built.mappings([panel.words])
    return built.with_transformation(DataTransformerConfig(id_val="organize", options=columns)).with_target(target)


def _dashboard(
    name: str, title: str, text: str, rows: dict[str, tuple[Panel, ...]], variables: Iterable[QueryVariable] = ()
) -> Dashboard:
    """Return a dashboard of rows of panels.

    Args:
        name: its uid, after "mqtwin-".
        variables: beside `datasource`.
    """
    board = Dashboard(title).uid(f"mqtwin-{name}").description(text).tags([TAG]).editable().time("now-3h", "now")
    board = board.refresh("30s").timezone("browser").tooltip(DashboardCursorSync.CROSSHAIR)
    link = DashboardLink("mqtwin").type(DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True).keep_time(True)
    board = board.link(link)
    board = board.with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for variable in variables:
        board = board.with_variable(variable)
    numbers = count(1)
    for row_title, panels in rows.items():
        board = board.with_row(Row(row_title).id(next(numbers)))
        for panel in panels:
            match panel:
                case Graph():
                    board = board.with_panel(_graph(panel).id(next(numbers)))
                case Figure():
                    board = board.with_panel(_figure(panel).id(next(numbers)))
                case Listing():
                    board = board.with_panel(_listing(panel).id(next(numbers)))
    return board


def _variable(label: str, metric: str, name: str = "store") -> QueryVariable:
    """Return a variable with the values of a label of a metric."""
    built = QueryVariable(name).label(label).datasource(_SOURCE).query(f"label_values({metric}, {name})")
    return built.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)


def _open_alerts(of_store: str, columns: dict[str, str], width: int = 24) -> Listing:
    """Return a table of open alerts. columns: headings by label."""
    query = f"max by ({', '.join(columns)}) (mqtwin_alert_open{of_store})"
    return Listing("Open alerts", query, columns, width=width, text="No data: no alert is open.")


def _overview() -> Dashboard:
    fullest = "topk(20, max by (store, resource) (mqtwin_usage_ratio))"
    soon = 'bottomk(20, mqtwin_time_to_full_seconds{quantile="0.5"} < +Inf)'
    roots = (
        'sort_desc(max by (store, resource, condition) (mqtwin_alert_open{role="root"})'
        " * on (store) group_left () max by (store) (mqtwin_incident_urgency > 0))"
    )
    of_root = {"store": "Store", "resource": "Resource", "condition": "Condition"}
    of_alert = {**of_root, "severity": "Severity", "level": "Level", "role": "Role"}
    rows: dict[str, tuple[Panel, ...]] = {
        "Now": (
            Figure("Incidents that call", "count(mqtwin_incident_urgency > 1) or vector(0)", red_from=1),
            Figure("Watches", "count(mqtwin_incident_urgency == 1) or vector(0)"),
            Figure("Fullest resource", "max(mqtwin_usage_ratio)", _RATIO, red_from=0.9),
            Figure("Refused puts, 1 h", "round(sum(increase(mqtwin_full_puts_total[1h])))", red_from=1),
            Figure("Age of the last event", "time() - max(mqtwin_event_time_seconds)", _SECONDS, red_from=300),
            Figure("Age of the job's last beat", "time() - min(mqtwin_beat_time_seconds)", _SECONDS, red_from=120),
        ),
        "Incidents": (
            Listing(
                "What is wrong: the root of each incident",
                roots,
                {"Value": "Urgency", **of_root},
                _URGENCY,
                width=12,
                text="No data: no incident.",
            ),
            Graph(
                "Urgency",
                {"{{store}}": "max by (store) (mqtwin_incident_urgency) > 0"},
                words=_URGENCY,
                text="No data: no incident.",
            ),
        ),
        "Stores": (
            Graph("Usage, the 20 fullest", {"{{store}} {{resource}}": fullest}, _RATIO, limit=1),
            Graph(
                "Time to full (median), the 20 nearest",
                {"{{store}} {{resource}}": soon},
                _SECONDS,
                text="No data: nothing becomes full within the horizon.",
            ),
            _open_alerts("", of_alert),
            Graph(
                "Drift", {"{{store}}": "mqtwin_drift_ratio"}, _RATIO, is_signed=True, text="No data before a MEASURE."
            ),
            Graph(
                "Measurements matched, 24 h",
                {"{{store}}": "mqtwin_fidelity_ratio"},
                _RATIO,
                limit=1,
                text="No data of a store before ten measurements.",
            ),
            Graph(
                "Refused puts per second",
                {"{{store}}": "rate(mqtwin_full_puts_total[5m]) > 0"},
                text="No data: no put is refused.",
            ),
        ),
    }
    return _dashboard("overview", "mqtwin: overview", "Every store: what fills, and when.", rows)


def _structure() -> Dashboard:
    of_store = '{store="$store"}'
    of_alert = {"resource": "Resource", "condition": "Condition", "severity": "Severity", "level": "Level"}
    rows: dict[str, tuple[Panel, ...]] = {
        "Incident": (
            Figure("Urgency", f"max(mqtwin_incident_urgency{of_store})", words=_URGENCY, height=8),
            _open_alerts(of_store, {**of_alert, "role": "Role"}, width=20),
        ),
        "Forecast": (
            Graph("Usage", {"{{resource}}": f"mqtwin_usage_ratio{of_store}"}, _RATIO, limit=1),
            Graph(
                "Time to full: 10 %, median, 90 %",
                {"{{resource}} {{quantile}}": f"mqtwin_time_to_full_seconds{of_store} < +Inf"},
                _SECONDS,
                text="No data: it does not become full within the horizon.",
            ),
            Graph(
                "Probability of full",
                {"{{resource}}": f"mqtwin_full_probability{of_store}"},
                _RATIO,
                limit=1,
                text="No data before the first forecast.",
            ),
            Graph("Urgency of the incident", {"urgency": f"mqtwin_incident_urgency{of_store}"}, words=_URGENCY),
            Graph(
                "Error of the forecast (Brier score), 30 days",
                {
                    "within {{horizon}} s": f"mqtwin_forecast_brier_score{of_store}",
                    "within {{horizon}} s, climatology": f"mqtwin_forecast_climatology_score{of_store}",
                },
                "none",
                text="0 is perfect. No data before the first outcome is known.",
            ),
            Graph(
                "Pages, 30 days",
                {"{{outcome}}": f"mqtwin_forecast_pages{of_store}"},
                text="No data before the first outcome is known.",
            ),
        ),
        "Structure": (
            Graph(
                "List entries",
                {"used": f"mqtwin_entries_used{of_store}", "total": f"mqtwin_entries{of_store}"},
            ),
            Graph(
                "Data elements",
                {"used": f"mqtwin_elements_used{of_store}", "total": f"mqtwin_elements{of_store}"},
            ),
            Graph("Size", {"size": f"mqtwin_structure_bytes{of_store}"}, _BYTES),
            Graph(
                "Messages",
                {
                    "held": f"mqtwin_store_messages{of_store}",
                    "offloaded": f"mqtwin_offloaded_messages{of_store}",
                    "uncommitted": f"mqtwin_uncommitted_messages{of_store}",
                },
            ),
        ),
        "Data sets and storage class memory": (
            Graph(
                "SMDS blocks",
                {
                    "{{qmgr}} used": f"mqtwin_smds_blocks_used{of_store}",
                    "{{qmgr}} total": f"mqtwin_smds_blocks{of_store}",
                },
            ),
            Graph(
                "Storage class memory, augmented space",
                {
                    "SCM used": f"mqtwin_scm_used_bytes{of_store}",
                    "SCM": f"mqtwin_scm_bytes{of_store}",
                    "augmented": f"mqtwin_augmented_bytes{of_store}",
                },
                _BYTES,
                text="No data of a structure without SCMMAXSIZE.",
            ),
        ),
        "Queues": (
            Graph("Messages of the deepest queues", {"{{queue}}": f"mqtwin_queue_messages{of_store}"}),
            Graph("Bytes of the deepest queues", {"{{queue}}": f"mqtwin_queue_bytes{of_store}"}, _BYTES),
        ),
    }
    variables = [_variable("Structure", 'mqtwin_usage_ratio{kind="structure"}')]
    return _dashboard("structure", "mqtwin: structure", "A structure, its data sets and its queues.", rows, variables)


def _page_sets() -> Dashboard:
    of_store = '{store=~"$store"}'
    drift = (
        'mqtwin_usage_ratio{resource="pages", store=~"$store"} - on (qmgr, pageset) group_left () '
        "(1 - max by (qmgr, pageset) (ibmmq_pageset_pages_unused) / max by (qmgr, pageset) (ibmmq_pageset_pages_total))"
    )
    rows: dict[str, tuple[Panel, ...]] = {
        "Forecast": (
            Graph("Usage", {"{{store}}": f"mqtwin_usage_ratio{of_store}"}, _RATIO, limit=1),
            Graph(
                "Time to full: 10 %, median, 90 %",
                {"{{store}} {{quantile}}": f"mqtwin_time_to_full_seconds{of_store} < +Inf"},
                _SECONDS,
                text="No data: nothing becomes full within the horizon.",
            ),
        ),
        "Page sets": (
            Graph(
                "Pages",
                {
                    "{{store}} used": f"mqtwin_pageset_pages_used{of_store}",
                    "{{store}} total": f"mqtwin_pageset_pages{of_store}",
                },
                text="No data without a page set.",
            ),
            Graph(
                "Expansions", {"{{store}}": f"mqtwin_pageset_expansions{of_store}"}, text="No data without a page set."
            ),
            Graph(
                "Buffer pool",
                {"{{store}}: {{bufferpool}}": f"mqtwin_bufferpool_usage_ratio{of_store}"},
                _RATIO,
                text="No data before a MEASURE.",
            ),
            Graph(
                "Twin minus DISPLAY USAGE",
                {"{{store}}": drift},
                _RATIO,
                is_signed=True,
                text="No data unless the same Prometheus scrapes mq_prometheus.",
            ),
        ),
        "Queue files": (
            Graph(
                "Size",
                {"{{store}}": f"mqtwin_queue_file_bytes{of_store}"},
                _BYTES,
                text="No data without a queue file.",
            ),
            Graph(
                "Messages",
                {"{{store}}": 'mqtwin_store_messages{kind="queue_file", store=~"$store"}'},
                text="No data without a queue file.",
            ),
        ),
        "Queues": (
            Graph("Messages of the deepest queues", {"{{store}} {{queue}}": f"mqtwin_queue_messages{of_store}"}),
            Graph("Bytes of the deepest queues", {"{{store}} {{queue}}": f"mqtwin_queue_bytes{of_store}"}, _BYTES),
        ),
    }
    variable = _variable("Store", 'mqtwin_usage_ratio{kind=~"page_set|queue_file"}').multi(True).include_all(True)
    title = "mqtwin: page sets and queue files"
    return _dashboard("page-sets", title, "Page sets and queue files, beside MQ's own figures.", rows, [variable])


def _job() -> Dashboard:
    rows: dict[str, tuple[Panel, ...]] = {
        "Now": (
            Figure("Behind, records per partition", "max(mqtwin_behind_records)", red_from=10_000),
            Figure("Age of the last beat", "time() - min(mqtwin_beat_time_seconds)", _SECONDS, red_from=120),
            Figure("Running for", "time() - max(mqtwin_job_start_time_seconds)", _SECONDS),
            Figure("Last batch", "max(mqtwin_batch_duration_seconds)", _SECONDS),
            Figure("Dead letters, 1 h", "round(sum(increase(mqtwin_dead_letters_total[1h])))", red_from=1),
            Figure("Exporter ready", "min(mqtwin_exporter_ready)", words=_YES),
        ),
        "Batches": (
            Graph("Events per second", {"events": "rate(mqtwin_job_events_total[2m])"}),
            Graph("Behind", {"records per partition": "mqtwin_behind_records"}),
            Graph("Duration of a batch", {"batch": "mqtwin_batch_duration_seconds"}, _SECONDS),
            Graph("Its parts", {"{{phase}}": "mqtwin_batch_phase_seconds"}, _SECONDS),
            Graph(
                "Batches, records and alerts per second",
                {
                    "batches": "rate(mqtwin_job_batches_total[2m])",
                    "records": "rate(mqtwin_job_records_total[2m])",
                    "alerts": "rate(mqtwin_job_alerts_total[2m])",
                },
            ),
            Graph(
                "Memory",
                {"state stores": "mqtwin_job_state_bytes", "Java": "mqtwin_job_resident_bytes"},
                _BYTES,
            ),
        ),
        "Input": (
            Graph(
                "Dead letters per second",
                {"{{reason}}": "rate(mqtwin_dead_letters_total[5m]) > 0"},
                text="No data: no event is rejected.",
            ),
            Graph("Gaps", {"{{store}}": "mqtwin_gaps > 0"}, text="No data: no sequence number is missing."),
            Graph(
                "Unmatched gets",
                {"{{store}}": "mqtwin_unmatched_gets > 0"},
                text="No data: every message that was got had been put.",
            ),
            Graph(
                "Duplicates per second",
                {"{{store}}": "rate(mqtwin_duplicate_events_total[5m]) > 0"},
                text="No data: no event comes twice.",
            ),
        ),
    }
    return _dashboard("job", "mqtwin: job", "The streaming job: batches, delay, rejected events.", rows)


BOARDS = {"overview": _overview, "structure": _structure, "page-sets": _page_sets, "job": _job}


def make(name: str) -> str:
    """Return a dashboard as JSON text."""
    return JSONEncoder(sort_keys=True, indent=2).encode(BOARDS[name]().build()) + "\n"


def main() -> None:
    """Write every dashboard."""
    OUT.mkdir(parents=True, exist_ok=True)
    for name in BOARDS:
        write_output(OUT / f"mqtwin-{name}.json", make(name))


if __name__ == "__main__":
    main()
