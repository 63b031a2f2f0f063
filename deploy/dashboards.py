"""``python -m deploy.dashboards``: write the Grafana dashboards of ``deploy/grafana/dashboards``.

For maintainers, after a change of metrics or panels: it needs grafana-foundation-sdk, a development dependency. The
dashboards are committed; a test makes them again and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.builders.common import VizLegendOptions
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
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from twin.outputs import write_output

OUT = Path(__file__).with_name("grafana") / "dashboards"
TAG = "mqtwin"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_RATIO, _SECONDS, _BYTES, _SHORT = "percentunit", "s", "bytes", "short"


@dataclass(frozen=True, slots=True)
class Graph:
    """A time series panel.

    Args:
        title: title of the panel.
        queries: PromQL by legend.
        unit: Grafana's name of the unit.
        width: columns of 24.
        limit: a line at this value, such as full; None: no line.
    """

    title: str
    queries: dict[str, str]
    unit: str = _SHORT
    width: int = 12
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A panel with a single number. red_from: value from which it is red."""

    title: str
    query: str
    unit: str = _SHORT
    red_from: float | None = None
    width: int = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """A table panel, one row a series."""

    title: str
    query: str
    unit: str = _SHORT
    width: int = 24


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
    built = timeseries.Panel().title(panel.title).datasource(_SOURCE).unit(panel.unit).min(0)
    built = built.legend(legend).span(panel.width).height(8).thresholds(_steps(panel.limit))
    for number, (name, query) in enumerate(panel.queries.items()):
        built = built.with_target(_target(query, name, number))
    return built


def _figure(panel: Figure) -> stat.Panel:
    built = stat.Panel().title(panel.title).datasource(_SOURCE).unit(panel.unit).span(panel.width).height(4)
    return built.thresholds(_steps(panel.red_from)).with_target(_target(panel.query, "", 0).instant())


def _listing(panel: Listing) -> table.Panel:
    target = _target(panel.query, "", 0).instant().format(PromQueryFormat.TABLE)
    built = table.Panel().title(panel.title).datasource(_SOURCE).unit(panel.unit).span(panel.width).height(8)
    return built.with_target(target)


def _dashboard(
    name: str, title: str, text: str, rows: dict[str, tuple[Panel, ...]], variables: Iterable[QueryVariable] = ()
) -> Dashboard:
    """Return a dashboard of rows of panels.

    Args:
        name: its uid, after "mqtwin-".
        title: title.
        text: description.
        rows: panels by title of the row.
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


def _overview() -> Dashboard:
    fullest = "topk(20, max by (store, resource) (mqtwin_usage_ratio))"
    soon = 'bottomk(20, mqtwin_time_to_full_seconds{quantile="0.5"} < +Inf)'
    rows: dict[str, tuple[Panel, ...]] = {
        "Now": (
            Figure("Incidents that call", "count(mqtwin_incident_urgency > 1) or vector(0)", red_from=1),
            Figure("Watches", "count(mqtwin_incident_urgency == 1) or vector(0)"),
            Figure("Fullest resource", "max(mqtwin_usage_ratio)", _RATIO, red_from=0.9),
            Figure("Refused puts, 1 h", "sum(increase(mqtwin_full_puts_total[1h]))", red_from=1),
            Figure("Age of the last event", "time() - max(mqtwin_event_time_seconds)", _SECONDS, red_from=300),
            Figure("Age of the job's last beat", "time() - max(mqtwin_beat_time_seconds)", _SECONDS, red_from=120),
        ),
        "Incidents": (
            Listing("Urgency: 1 watch to 4 full", "sort_desc(mqtwin_incident_urgency > 0)", width=12),
            Listing("What is wrong: the root of each", 'mqtwin_alert_open{role="root"}', width=12),
        ),
        "Stores": (
            Graph("Usage, the 20 fullest", {"{{store}} {{resource}}": fullest}, _RATIO, limit=1),
            Graph("Time to full (median), the 20 nearest", {"{{store}} {{resource}}": soon}, _SECONDS),
            Listing("All open alerts", "mqtwin_alert_open"),
            Graph("Drift", {"{{store}}": "mqtwin_drift_ratio"}, _RATIO),
            Graph("Measurements matched, 24 h", {"{{store}}": "mqtwin_fidelity_ratio"}, _RATIO),
            Graph("Refused puts per second", {"{{store}}": "rate(mqtwin_full_puts_total[5m])"}),
        ),
    }
    return _dashboard("overview", "mqtwin: overview", "Every store: what fills, and when.", rows)


def _structure() -> Dashboard:
    of_store = '{store="$store"}'
    rows: dict[str, tuple[Panel, ...]] = {
        "Incident": (
            Figure("Urgency, 1 to 4", f"max(mqtwin_incident_urgency{of_store})", red_from=2),
            Listing("Open alerts", f"mqtwin_alert_open{of_store}", width=20),
        ),
        "Forecast": (
            Graph("Usage", {"{{resource}}": f"mqtwin_usage_ratio{of_store}"}, _RATIO, limit=1),
            Graph(
                "Time to full: 10 %, median, 90 %",
                {"{{resource}} {{quantile}}": f"mqtwin_time_to_full_seconds{of_store}"},
                _SECONDS,
            ),
            Graph("Probability of full", {"{{resource}}": f"mqtwin_full_probability{of_store}"}, _RATIO),
            Graph("Urgency of the incident", {"urgency": f"mqtwin_incident_urgency{of_store}"}),
            Graph(
                "Error of the forecast (Brier score), 30 days",
                {
                    "{{horizon}} s": f"mqtwin_forecast_brier_score{of_store}",
                    "{{horizon}} s, climatology": f"mqtwin_forecast_climatology_score{of_store}",
                },
            ),
            Graph("Pages, 30 days", {"{{outcome}}": f"mqtwin_forecast_pages{of_store}"}),
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
                {"{{store}} {{quantile}}": f"mqtwin_time_to_full_seconds{of_store}"},
                _SECONDS,
            ),
        ),
        "Page sets": (
            Graph(
                "Pages",
                {
                    "{{store}} used": f"mqtwin_pageset_pages_used{of_store}",
                    "{{store}} total": f"mqtwin_pageset_pages{of_store}",
                },
            ),
            Graph("Expansions", {"{{store}}": f"mqtwin_pageset_expansions{of_store}"}),
            Graph("Buffer pool", {"{{store}}: {{bufferpool}}": f"mqtwin_bufferpool_usage_ratio{of_store}"}, _RATIO),
            Graph("Twin minus DISPLAY USAGE (mq_prometheus)", {"{{store}}": drift}, _RATIO),
        ),
        "Queue files": (
            Graph(
                "Size",
                {
                    "{{store}}": f"mqtwin_queue_file_bytes{of_store}",
                    "{{store}} maximum": f"mqtwin_queue_file_max_bytes{of_store}",
                },
                _BYTES,
            ),
            Graph("Messages", {"{{store}}": f"mqtwin_store_messages{of_store}"}),
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
            Figure("Age of the last beat", "time() - max(mqtwin_beat_time_seconds)", _SECONDS, red_from=120),
            Figure("Running for", "time() - max(mqtwin_job_start_time_seconds)", _SECONDS),
            Figure("Last batch", "max(mqtwin_batch_duration_seconds)", _SECONDS),
            Figure("Dead letters, 1 h", "sum(increase(mqtwin_dead_letters_total[1h]))", red_from=1),
            Figure("Exporter ready", "max(mqtwin_exporter_ready)"),
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
            Graph("Dead letters per second", {"{{reason}}": "rate(mqtwin_dead_letters_total[5m])"}),
            Graph("Gaps", {"{{store}}": "mqtwin_gaps > 0"}),
            Graph("Unmatched gets", {"{{store}}": "mqtwin_unmatched_gets > 0"}),
            Graph("Duplicates per second", {"{{store}}": "rate(mqtwin_duplicate_events_total[5m]) > 0"}),
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
