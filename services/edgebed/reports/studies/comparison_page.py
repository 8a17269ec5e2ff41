"""The page of a comparison."""

import shlex
from collections.abc import Sequence

import numpy as np

from edgebed.core.quantities import UNMEASURED, count_text, updates_text, utc_text
from edgebed.reports.programs.charts import charts as program_charts
from edgebed.reports.run.answer import Cost, costs_text, firsts_text
from edgebed.reports.run.charts import with_most_frequent
from edgebed.reports.run.clients_text import client_chart
from edgebed.reports.studies.comparison_tables import clients_grid, clients_legend, grids, how_to_read, trials_grid
from edgebed.reports.studies.curves import BAND, Over, curves_chart
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.page import (
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Section,
    Span,
    legend,
    shaded,
)
from edgebed.running.results import ProgramTrial, Run
from edgebed.studies.arms import Arm
from edgebed.studies.comparison.clients import TUNED
from edgebed.studies.comparison.comparison import FIRSTS, INCOMPARABLE, Comparison
from edgebed.studies.measures import part_of

CHARTS: dict[Over, str] = {
    "traffic": "bytes up and down",
    "updates": "updates",
    "examples": "examples",
    "time": "time",
    "ingress": "bytes up",
    "egress": "bytes down",
}
NOBODY = np.zeros(0)
RUN_HEAD = ("run", "seed", "runtime", "edgebed", "code", "torch", "started")


def comparison_page(comparison: Comparison, arms: Sequence[Arm]) -> Page:
    """The page; `arms` are those that were compared. In a terminal its tables, what changed, and what to know."""
    runs = list({member.run.path: member.run for arm in arms for member in arm.members.values()}.values())
    questions = {member.begun.plan.question for arm in arms for member in arm.members.values()}
    others = {name: arm.changes for name, arm in comparison.arms.items() if name != comparison.baseline}
    tables = [Section(title, [grid]) for title, grid in grids(comparison).items()]
    reading = Notes(shaded(how_to_read(comparison), "quiet"))
    tasks, notes = Notes(shaded(comparison.other_tasks, "bad")), Notes(shaded(comparison.notes, "unknown"))
    left_out = Notes(shaded((f"left out: {line}" for line in comparison.left_out), "quiet"))
    are_programs = comparison.told is not None
    charts = list(program_charts(_named(arms))) if are_programs else charts_of_comparison(comparison, arms)
    clients: list[Part] = [legend(clients_legend(comparison)), clients_grid(comparison)]
    changes = [
        Grid(("setting", comparison.baseline, name), [(each.path, each.before, each.after) for each in changed])
        for name, changed in others.items()
    ]
    return Page(
        name=f"{', '.join(others)} against {comparison.baseline}" if others else comparison.baseline,
        heading=questions.pop() if len(questions) == 1 else "",
        lead=[
            tasks,
            Paragraph(Span(_answer(comparison), "strong")),
            Paragraph(_firsts(comparison)),
            legend(_facts(comparison, runs)),
            notes,
            left_out,
            Figures(charts),
            legend(_words(comparison)),
        ],
        parts=[
            *tables,
            reading,
            *(
                [Section("Client by client", [*clients, Figures([clients_chart(comparison, arms)])])]
                if comparison.clients
                else []
            ),
            Section("What changed", changes),
            Section("Each trial", [trials_grid(comparison)]),
            Section("The runs", [Grid(RUN_HEAD, list(map(_run_row, runs)))]),
            Section("How to repeat it", [Listing([_command(comparison, runs)])]),
        ],
        brief=[
            tasks,
            Paragraph(_firsts(comparison)),
            *tables,
            reading,
            Section("Client by client", clients),
            *(
                Section(f"What changed from {comparison.baseline} to {name}", [Notes(list(map(str, changed)))])
                for name, changed in others.items()
            ),
            notes,
            left_out,
        ],
    )


def _named(arms: Sequence[Arm]) -> dict[str, ProgramTrial]:
    """The trials of arms of programs, as charts call them."""
    return {
        arm.name if len(arm.members) == 1 else f"{arm.name}, seed {seed}": member.begun
        for arm in arms
        for seed, member in arm.members.items()
        if isinstance(member.begun, ProgramTrial)
    }


def _answer(comparison: Comparison) -> str:
    """What each arm took to the level, in the mean of its seeds; empty where none reached it in every seed."""
    means = {
        name: {measure: found.mean.mean for measure, found in arm.measures.items() if found.mean}
        for name, arm in comparison.arms.items()
    }
    costs = {
        name: Cost(found.get("ingress_bytes_to"), found.get("traffic_bytes_to"), found["time_s_to"])
        for name, found in means.items()
        if "time_s_to" in found
    }
    return costs_text(comparison.level, costs) if comparison.level is not None and costs else ""


def _firsts(comparison: Comparison) -> str:
    """Who is first by time and by bytes, and whether that is decided."""
    wins = {name: comparison.firsts.get(measure) for name, measure in zip(("time", "bytes"), FIRSTS, strict=True)}
    return firsts_text(wins, has_seeds=any(len(arm.outcomes) > 1 for arm in comparison.arms.values()))


def _facts(comparison: Comparison, runs: Sequence[Run]) -> str:
    """How much was compared."""
    seeds = {seed for arm in comparison.arms.values() for seed in arm.seeds}
    counts = ((len(comparison.arms), "arm"), (len(seeds), "seed"), (len(runs), "run"))
    runtimes = dict.fromkeys(arm.runtime for arm in comparison.arms.values())
    return " · ".join((*(count_text(*each) for each in counts), f"{' and '.join(runtimes)} runtime"))


def _words(comparison: Comparison) -> str:
    """What is to be known of the charts."""
    if comparison.told is not None:
        return ""
    band = BAND if any(len(arm.outcomes) > 1 for arm in comparison.arms.values()) else ""
    average = f"Values are moving averages over {comparison.window} evaluations." if comparison.window > 1 else ""
    return " ".join(filter(None, (updates_text(comparison.examples_per_update), band, average)))


def charts_of_comparison(comparison: Comparison, arms: Sequence[Arm]) -> list[Chart]:
    """All charts of the page, against examples instead of updates where these stand for different numbers of them."""
    series = {arm.name: [member.trial.series for member in arm.members.values()] for arm in arms}
    examples = comparison.examples_per_update
    left_out = "updates" if updates_text(examples) else "examples"
    shares = {arm.most_frequent_class for arm in comparison.arms.values() if arm.most_frequent_class is not None}
    return [
        with_most_frequent(
            curves_chart(f"{comparison.headline.title} against {what}", series, over, comparison.window, examples),
            shares,
            comparison.selects_by,
        )
        for over, what in CHARTS.items()
        if over != left_out
    ]


def clients_chart(comparison: Comparison, arms: Sequence[Arm]) -> Chart:
    """The headline of each client, a mark a client and arm; empty where nothing was measured client by client."""
    values = {name: np.array([*each.values.values()]) for name, each in comparison.clients.items()}
    groups = {name: (values.get(name, NOBODY), values.get(TUNED.format(name), NOBODY)) for name in comparison.arms}
    summaries = [member.trial.summary.clients for arm in arms for member in arm.members.values()]
    return client_chart(groups, comparison.headline, part_of(each.part for each in summaries if each))


def _run_row(run: Run) -> tuple[str, ...]:
    manifest = run.manifest
    versions = manifest.get("versions", {})
    facts = (
        manifest.get("seed"), manifest.get("runtime"), versions.get("edgebed"), manifest.get("code"),
        versions.get("torch"), utc_text(str(manifest.get("started", ""))),
    )  # fmt: skip
    return (run.folder.name, *(UNMEASURED if fact is None else str(fact) for fact in facts))


def _command(comparison: Comparison, runs: Sequence[Run]) -> str:
    """The command that makes the same page."""
    options = [] if comparison.told is not None else ["--window", str(comparison.window)]
    if any(change.path in INCOMPARABLE for arm in comparison.arms.values() for change in arm.changes):
        options.append("--force")
    if (level := comparison.level) and level.is_named and level.measure == comparison.headline:
        options += ["--to", f"{100 * level.value:.10g}%" if level.measure.is_share else f"{level.value:.10g}"]
    if comparison.baseline != next(iter(comparison.arms)):
        options += ["--baseline", comparison.baseline]
    return shlex.join(("edgebed", "compare", *(run.folder.name for run in runs), *options))
