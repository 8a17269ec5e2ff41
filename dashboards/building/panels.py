"""The kinds of panels that the dashboards are made of; each has a title, a sentence that says what it shows, a unit."""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    dashboard,
    heatmap,
    stat,
    table,
    timeseries,
    xychart,
)
from grafana_foundation_sdk.builders import heatmap as heatmaps
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heat_model
from grafana_foundation_sdk.models import prometheus
from grafana_foundation_sdk.models import xychart as xy_model

from dashboards.building.queries import Query

SOURCE = options.DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDE = 24
"""Columns of a panel that has room for a table beside its curves, also on a screen of 1280 pixels."""
WIDTHS = {"dateTimeAsIso": [model.DynamicConfigValue(id_val="custom.width", value=170)]}
"""Of columns whose values would be cut."""
LETTERS = "ABCDEFGHIJKL"
PER_SECOND = "suffix:/s"
CORES = "suffix:cores"
PHASE_COLORS = {
    "compute": "#56a64b", "encode": "#8ab8ff", "wait": "#ff9830", "pause": "#6e7077",
    "forward": "#96d98d", "learn": "#56a64b", "teach": "#3274d9", "copy": "#8ab8ff", "inputs": "#ff9830",
    "answers": "#fa6400",
}  # fmt: skip
STATE_COLORS = {
    "expected": "#6e7077",
    "started": "#8ab8ff",
    "joined": "#5794f2",
    "ready": "#3274d9",
    "running": "#56a64b",
    "unresponsive": "#b877d9",
    "stopped": "#ccccdc",
    "died": "#e02f44",
    "missing": "#ff9830",
}


def describe(panel: Any, width: int, height: int, title: str, description: str, unit: str) -> Any:
    """Give a panel what every panel has."""
    return panel.span(width).height(height).title(title).description(description).unit(unit).datasource(SOURCE)


def ask(panel: Any, *queries: Query, instant: bool = False, form: prometheus.PromQueryFormat | None = None) -> Any:
    """Give it its queries, over the time that is shown or, `instant`, of its end alone."""
    for letter, (expr, legend) in zip(LETTERS, queries, strict=False):
        query = Dataquery().ref_id(letter).expr(expr).legend_format(legend).datasource(SOURCE)
        panel.with_target((query.instant() if instant else query.range()).format(form or TIME_SERIES))
    return panel


JOINED = {"byField": "Time", "mode": "outer"}
BY_NAME = {
    "excludeByName": {}, "indexByName": {}, "renameByName": {}, "orderByMode": "auto",
    "orderBy": [{"type": "name", "desc": False}],
}  # fmt: skip
TIME_SERIES = prometheus.PromQueryFormat.TIME_SERIES
TABLE = prometheus.PromQueryFormat.TABLE


# --- one value ----------------------------------------------------------------------------------------------------


def figure(width: int, title: str, description: str, unit: str, *queries: Query, instant: bool = False) -> stat.Panel:
    """The last value, large."""
    panel: stat.Panel = ask(describe(stat.Panel(), width, 5, title, description, unit), *queries, instant=instant)
    if instant:  # Prometheus answers in any order, and so in another one in each panel
        panel.with_transformation(model.DataTransformerConfig(id_val="joinByField", options=JOINED))
        panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=BY_NAME))
    return (
        panel.reduce_options(last())
        .color_mode(options.BigValueColorMode.VALUE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .thresholds(steps(("text", None)))
    )


def steps(*colors: tuple[str, float | None]) -> dashboard.ThresholdsConfig:
    """Colours, each with the value from which on it is shown; the first from the least."""
    thresholds = [model.Threshold(value=at, color=color) for color, at in colors]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)


def words(meanings: dict[str, tuple[str, str]]) -> list[model.ValueMapping]:
    """Values that are shown as words: value, word, colour."""
    shown = {value: model.ValueMappingResult(text=text, color=color) for value, (text, color) in meanings.items()}
    return [model.ValueMap(options=shown)]


def last() -> common.ReduceDataOptions:
    """Of a series its last value: that of a trial that is over as well."""
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False)


def bars(
    width: int, title: str, description: str, *queries: Query, height: int = 5, ordered: bool = True
) -> bargauge.Panel:
    """How far each series is on its way from 0 to 1; `ordered` by their names, or as they are answered."""
    bare = describe(bargauge.Panel(), width, height, title, description, "percentunit")
    panel: bargauge.Panel = ask(bare, *queries, instant=True)
    if ordered:
        panel.with_transformation(model.DataTransformerConfig(id_val="joinByField", options=JOINED))
        panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=BY_NAME))
    return (
        panel.min(0)
        .max(1)
        .orientation(options.VizOrientation.HORIZONTAL)
        .text(common.VizTextDisplayOptions().title_size(14).value_size(18))
        .reduce_options(last())
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("blue"))
    )


def or_else(why: str, panels: Sequence[Any]) -> list[Any]:
    """What stands in a panel's place where nothing is answered, unless it says so itself: why, in words."""
    return [panel if panel.build().field_config.defaults.no_value else panel.no_value(why) for panel in panels]


# --- over time ----------------------------------------------------------------------------------------------------


def curves(width: int, title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Values over time."""
    panel: timeseries.Panel = ask(describe(timeseries.Panel(), width, 8, title, description, unit), *queries)
    return panel.line_width(2).show_points(options.VisibilityMode.NEVER).legend(readings(width)).tooltip(tooltip())


def bounded(panel: timeseries.Panel, bound: float) -> timeseries.Panel:
    """A dashed red line at the bound that the verdict, or an alert, has."""
    panel.thresholds(steps(("transparent", None), ("red", bound)))
    return panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED))


def mirrored(panel: timeseries.Panel, ending: str) -> timeseries.Panel:
    """Series whose name ends so are drawn below zero; their values are what they are."""
    below = model.DynamicConfigValue(id_val="custom.transform", value="negative-Y")
    return panel.override_by_regexp(f"/ {ending}$/", [below]).axis_centered_zero(axis_centered_zero=True)


def dashed(panel: timeseries.Panel, ending: str) -> timeseries.Panel:
    """Series whose name ends so are dashed: what is wanted, beside what is."""
    style = model.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [10, 10]})
    return panel.override_by_regexp(f"/ {ending}$/", [style])


def counted(panel: timeseries.Panel) -> timeseries.Panel:
    """Numbers of something from 0 on, whole ones; where there is nothing the axis ends at 1."""
    return panel.min(0).decimals(0).axis_soft_max(1)


def stacked(width: int, title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Parts of a whole over time, one upon the other."""
    panel = curves(width, title, description, unit, *queries).min(0).line_width(0).fill_opacity(60).legend(legend())
    return panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL))


def readings(width: int) -> common.VizLegendOptions:
    """A row for each series, with the values that are read most, the highest first; beside a wide chart, else below."""
    table = legend().display_mode(options.LegendDisplayMode.TABLE).calcs(["lastNotNull", "mean", "max"])
    table.sort_by("Max").sort_desc(sort_desc=True)
    return table.placement(options.LegendPlacement.RIGHT) if width >= WIDE else table


def slowest_first(width: int) -> common.VizLegendOptions:
    """The legend of a chart in which the lowest curve is the one to look for."""
    return readings(width).sort_by("Mean").sort_desc(sort_desc=False)


def legend() -> common.VizLegendOptions:
    """Below the chart, in a line."""
    shown = common.VizLegendOptions().display_mode(options.LegendDisplayMode.LIST)
    return shown.placement(options.LegendPlacement.BOTTOM).show_legend(show_legend=True)


def tooltip() -> common.VizTooltipOptions:
    """All series at once, the largest first."""
    return common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING)


def colored(panel: Any, colors: dict[str, str]) -> Any:
    """Series of these names always have these colours."""
    for name, color in colors.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_name(name, [model.DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def linked(panel: Any, column: str, *links: tuple[str, str]) -> Any:
    """A column of a table whose cells lead to each of `links`: title and address."""
    found = [{"title": title, "url": url, "targetBlank": False} for title, url in links]
    return panel.override_by_name(column, [model.DynamicConfigValue(id_val="links", value=found)])


def worded(panel: Any, column: str, meanings: dict[str, tuple[str, str]]) -> Any:
    """A column of a table whose values are shown as words, in their colours."""
    shown = {value: {"text": text, "color": color} for value, (text, color) in meanings.items()}
    return panel.override_by_name(
        column,
        [
            model.DynamicConfigValue(id_val="mappings", value=[{"type": "value", "options": shown}]),
            model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
        ],
    )


def to_node(panel: Any) -> Any:
    """Curves of single nodes lead to the dashboard Workers, with that node alone."""
    link = dashboard.DashboardLink("This node").url(node_url("${__field.labels.node}"))
    return panel.data_links([link])


def node_url(node: str) -> str:
    """Of the dashboard Workers with one node, the run and the time range as they are."""
    kept = "${datasource:queryparam}&${run:queryparam}&${trial:queryparam}"
    return f"/d/edgebed-workers?{kept}&var-worker={node}&${{__url_time_range}}"


def heat(width: int, title: str, description: str, unit: str, query: str, *, of_histogram: bool) -> heatmap.Panel:
    """How many have which value: of a histogram its buckets, else of single series counted by Grafana."""
    form = prometheus.PromQueryFormat.HEATMAP if of_histogram else TIME_SERIES
    asked = (query, "{{le}}" if of_histogram else "{{trial}} {{node}}")
    panel: heatmap.Panel = ask(describe(heatmap.Panel(), width, 8, title, description, unit), asked, form=form)
    axis = heatmaps.YAxisConfig().unit(unit).axis_placement(options.AxisPlacement.LEFT)
    if not of_histogram:
        rows = common.HeatmapCalculationBucketConfig().mode(options.HeatmapCalculationMode.COUNT).value("20")
        panel.calculation(common.HeatmapCalculationOptions().y_buckets(rows))
        axis.min(0)
    colors = heatmaps.HeatmapColorOptions().mode(heat_model.HeatmapColorMode.SCHEME).scheme("Blues").steps(32)
    shown = colors.scale(heat_model.HeatmapColorScale.EXPONENTIAL).exponent(0.5).reverse(reverse=False).fill("blue")
    return (
        panel.calculate(calculate=not of_histogram)
        .color(shown)
        .y_axis(axis)
        .cell_gap(1)
        .filter_values(heatmaps.FilterValueRange().le(1e-9))
        .tooltip(heatmaps.HeatmapTooltip().mode(options.TooltipDisplayMode.SINGLE).y_histogram(y_histogram=True))
        .show_legend()
    )


# --- tables and bars, of the end of the time that is shown -----------------------------------------------------------


def rows(
    width: int,
    height: int,
    title: str,
    description: str,
    labels: dict[str, str],
    *columns: tuple[str, str, str],
    hidden: Sequence[str] = (),
) -> table.Panel:
    """A table: `labels` and what their columns are called, then (query, name, unit) of each that is not `hidden`.

    Rows of all queries that agree in these labels become one. The queries ask for the last value in the time shown.
    """
    panel: table.Panel = describe(table.Panel(), width, height, title, description, "none")
    ask(panel, *((query, "{{" + next(iter(labels)) + "}}") for query, _, _ in columns), instant=True, form=TABLE)
    alone = len(columns) == 1
    values = {
        "Value" if alone else f"Value #{letter}": name for letter, (_, name, _) in zip(LETTERS, columns, strict=False)
    }
    order = [*labels, *values]
    organized = {
        "excludeByName": {"Time": True} | {name: True for name, title in values.items() if title in hidden},
        "indexByName": {name: place for place, name in enumerate(order)},
        "renameByName": labels | values,
    }
    if not alone:
        panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=organized))
    for name, unit in [(name, unit) for _, name, unit in columns if name not in hidden]:
        panel.override_by_name(name, [model.DynamicConfigValue(id_val="unit", value=unit), *WIDTHS.get(unit, [])])
    pages = common.TableFooterOptions().show(show=False).reducer([]).count_rows(count_rows=False)
    return (
        panel.footer(pages.enable_pagination(enable_pagination=True))
        .filterable(filterable=True)
        .min_width(70)
        .show_header(show_header=True)
        .cell_height(options.TableCellHeight.SM)
        .frame_index(0)
    )


def sorted_by(panel: table.Panel, name: str, *, descending: bool) -> table.Panel:
    """The order of a table's rows, until somebody clicks on another column."""
    return panel.sort_by([common.TableSortByFieldState().display_name(name).desc(desc=descending)])


def bar_each(
    width: int, title: str, description: str, unit: str, query: str, bar: tuple[str, ...], part: str
) -> barchart.Panel:
    """A bar for all values together of the labels `bar`, with a part for each value of the label `part`.

    The query asks for the whole time that is shown.
    """
    panel: barchart.Panel = describe(barchart.Panel(), width, 8, title, description, unit)
    labels = ", ".join(f'"{label}"' for label in bar)
    ask(panel, (f'label_join({query}, "bar", " ", {labels})', "{{bar}} {{" + part + "}}"), instant=True, form=TABLE)
    matrix = {"columnField": part, "rowField": "bar", "valueField": "Value", "emptyValue": "zero"}
    panel.with_transformation(model.DataTransformerConfig(id_val="groupingToMatrix", options=matrix))
    ordered = {"fields": {}, "sort": [{"field": f"bar\\{part}"}]}
    panel.with_transformation(model.DataTransformerConfig(id_val="sortBy", options=ordered))
    return (
        panel.x_field(f"bar\\{part}")
        .orientation(options.VizOrientation.HORIZONTAL)
        .stacking(options.StackingMode.NORMAL)
        .show_value(options.VisibilityMode.NEVER)
        .fill_opacity(70)
        .line_width(0)
        .legend(legend())
        .tooltip(tooltip())
        .min(0)
    )


# --- one value against another --------------------------------------------------------------------------------------


def against(
    width: int,
    title: str,
    description: str,
    x: tuple[str, str],
    y: tuple[str, str],
    *pairs: tuple[str, str, str],
    colors: Sequence[str],
) -> xychart.Panel:
    """A curve of points (x, y) for each of `pairs` (name, query of x, query of y); `x` and `y` are (name, unit).

    All answers are joined by their time, as if they were one table; a curve then takes two of its columns.
    """
    (x_name, x_unit), (y_name, y_unit) = x, y
    panel: xychart.Panel = describe(xychart.Panel(), width, 9, title, description, y_unit)
    queries = [
        (query, f"{name}: {what}") for name, *both in pairs for query, what in zip(both, (x_name, y_name), strict=True)
    ]
    ask(panel, *queries)
    panel.with_transformation(model.DataTransformerConfig(id_val="joinByField", options=JOINED))
    for name, _, _ in pairs:
        panel.override_by_name(f"{name}: {x_name}", [model.DynamicConfigValue(id_val="unit", value=x_unit)])
    colored(panel, {f"{name}: {y_name}": color for (name, *_), color in zip(pairs, colors, strict=True)})
    return (
        panel.mapping(xy_model.SeriesMapping.MANUAL)
        .series([_series(name, f"{name}: {x_name}", f"{name}: {y_name}") for name, _, _ in pairs])
        .show(xy_model.XYShowMode.POINTS_AND_LINES)
        .point_size(xychart.XychartFieldConfigPointSize().fixed(4))
        .line_width(1)
        .legend(legend())
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.SINGLE).sort(options.SortOrder.NONE))
    )


def _series(name: str, x: str, y: str) -> xychart.XYSeriesConfig:
    def field(of: str) -> xychart.MatcherConfig:
        return xychart.MatcherConfig().id("byName").options(of)

    return (
        xychart.XYSeriesConfig()
        .name(xychart.XychartXYSeriesConfigName().fixed(name))
        .frame(xychart.XychartXYSeriesConfigFrame().matcher(xychart.MatcherConfig().id("byIndex").options(0)))
        .x(xychart.XychartXYSeriesConfigX().matcher(field(x)))
        .y(xychart.XychartXYSeriesConfigY().matcher(field(y)))
    )
