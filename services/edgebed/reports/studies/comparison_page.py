"""A comparison as a page: one HTML file that needs nothing else, for a screen (light or dark, wide or narrow)."""

import shlex
from collections.abc import Iterator, Sequence

from edgebed.core.quantities import UNMEASURED, count_text, updates_text, utc_text
from edgebed.reports.studies.comparison_tables import grids, legend, trial_head, trial_rows
from edgebed.reports.studies.curves import BAND, Over, curves_chart
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.grid import Faint
from edgebed.reports.writing.html import Raw, escape, figures, items, page, section, table
from edgebed.running.results import Run
from edgebed.studies.arms import Arm
from edgebed.studies.comparison.comparison import INCOMPARABLE, Comparison

CHARTS: dict[Over, str] = {
    "traffic": "Accuracy against bytes up and down",
    "updates": "Accuracy against updates",
    "examples": "Accuracy against examples",
    "time": "Accuracy against time",
    "ingress": "Accuracy against bytes up",
    "egress": "Accuracy against bytes down",
}
RUN_HEAD = ("run", "seed", "runtime", "edgebed", "code", "torch", "started")


def render(comparison: Comparison, arms: Sequence[Arm]) -> str:
    """The page as one HTML document; `arms` are those that were compared."""
    runs = list({member.run.path: member.run for arm in arms for member in arm.members.values()}.values())
    parts = [
        _header(comparison, arms, runs),
        *_tables(comparison),
        _changes(comparison),
        _charts(comparison, arms),
        section("Each trial", table(trial_head(comparison), list(trial_rows(comparison)))),
        section("The runs", table(RUN_HEAD, [_run_row(run) for run in runs])),
        section("How to repeat it", f"<pre>{escape(_command(comparison, runs))}</pre>"),
    ]
    return page(_title(comparison), "".join(parts))


def _title(comparison: Comparison) -> str:
    """Title of the page, e.g. `adacomp against asgd`."""
    others = [name for name in comparison.arms if name != comparison.baseline]
    return f"{', '.join(others)} against {comparison.baseline}" if others else comparison.baseline


def _header(comparison: Comparison, arms: Sequence[Arm], runs: Sequence[Run]) -> str:
    questions = {member.trial.plan.question for arm in arms for member in arm.members.values()}
    heading = questions.pop() if len(questions) == 1 else ""
    seeds = {seed for arm in comparison.arms.values() for seed in arm.seeds}
    runtimes = dict.fromkeys(arm.runtime for arm in comparison.arms.values())
    facts = (
        count_text(len(comparison.arms), "arm"),
        count_text(len(seeds), "seed"),
        count_text(len(runs), "run"),
        f"{' and '.join(runtimes)} runtime",
    )
    name, heading = ("comparison", _title(comparison)) if not heading else (_title(comparison), heading)
    return (
        f"<header><p class=name>{escape(name)}</p><h1>{escape(heading)}</h1>"
        f"{items(comparison.other_tasks, 'bad')}"
        f"<p class=quiet>{escape(' · '.join(facts))}</p>"
        f"{items(comparison.notes, 'unknown')}"
        f"{items([f'left out: {line}' for line in comparison.left_out], 'quiet')}</header>"
    )


def _tables(comparison: Comparison) -> Iterator[str]:
    for grid in grids(comparison):
        yield section(grid.title, table(grid.head, [tuple(map(_html, row)) for row in grid.rows]))
    yield items(legend(comparison), "quiet")


def _html(text: str) -> str:
    return Raw(f"<span class=quiet>{escape(text)}</span>") if isinstance(text, Faint) else text


def _changes(comparison: Comparison) -> str:
    parts = []
    for name, arm in comparison.arms.items():
        if name != comparison.baseline:
            rows = [(change.path, change.before, change.after) for change in arm.changes]
            parts.append(table(("setting", comparison.baseline, name), rows))
    return section("What changed", "".join(parts)) if parts else ""


def charts_of_comparison(comparison: Comparison, arms: Sequence[Arm]) -> list[Chart]:
    """All charts of the page, against examples instead of updates where these stand for different numbers of them."""
    series = {arm.name: [member.trial.series for member in arm.members.values()] for arm in arms}
    examples = comparison.examples_per_update
    left_out = "updates" if updates_text(examples) else "examples"
    return [
        curves_chart(title, series, over, comparison.window, examples)
        for over, title in CHARTS.items()
        if over != left_out
    ]


def _charts(comparison: Comparison, arms: Sequence[Arm]) -> str:
    shown = figures(charts_of_comparison(comparison, arms))
    sentences = list(filter(None, [updates_text(comparison.examples_per_update)]))
    if any(len(arm.members) > 1 for arm in arms):
        sentences.append(BAND)
    if comparison.window > 1:
        sentences.append(f"Accuracies are moving averages over {comparison.window} evaluations.")
    words = f"<p class=quiet>{escape(' '.join(sentences))}</p>"
    return section("Charts", words + shown) if shown else ""


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
    options = [*(("--window", str(comparison.window)) if comparison.window > 1 else ())]
    if any(change.path in INCOMPARABLE for arm in comparison.arms.values() for change in arm.changes):
        options.append("--force")
    if comparison.accuracy is not None and not comparison.accuracy_chosen:
        options += ["--to", f"{100 * comparison.accuracy:.10g}%"]
    if comparison.baseline != next(iter(comparison.arms)):
        options += ["--baseline", comparison.baseline]
    return shlex.join(("edgebed", "compare", *(run.folder.name for run in runs), *options))
