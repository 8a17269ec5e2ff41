"""Layers: how fast each shard of a model that lies on several devices is, what it waits for, what it learns."""

from collections.abc import Sequence
from typing import Any

from dashboards.building.frame import (
    events,
    run_variable,
    several,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import (
    PER_SECOND,
    PHASE_COLORS,
    bar_each,
    colored,
    curves,
    figure,
    heat,
    or_else,
    stacked,
)
from dashboards.building.queries import BY_NODE, BY_TRIAL, HERE, latest, rate, ratio, share, ten
from dashboards.run_overview import latest_headline

NAME = "layers"
NONE = "no shards: the method is not layer-wise, nothing has been learnt yet, or nobody tells, as in a simulation"
UNTOLD = "no shards, or a replayed run, which does not tell"
NO_MODULES = "no modules: the method waits for what it needs"
SHARDS = HERE + ',node=~"$shard"'
STEPS = f"node:edgebed_shard_steps:rate20s{{{SHARDS}}}"
PHASES = {name: PHASE_COLORS[name] for name in ("forward", "learn", "teach", "copy", "inputs", "answers")}


def standing() -> list[Any]:
    """How the whole model stands."""
    return [
        figure(
            8,
            "Steps of the slowest shard now",
            "Mini-batches that it learns of each second: the pace of the whole model.",
            PER_SECOND,
            (f"min by (trial) ({STEPS})", BY_TRIAL),
        )
        .decimals(2)
        .no_value("no shards learn now"),
        latest_headline(8),
        figure(
            8,
            "Steps a second in the end",
            "Of the slowest shard from its first step to its last, once the trial is over.",
            PER_SECOND,
            (latest("edgebed_trial_steps_per_second"), BY_TRIAL),
            instant=True,
        )
        .decimals(2)
        .no_value("not yet"),
    ]


def pace() -> list[Any]:
    """How fast the shards are."""
    return [
        curves(
            8,
            "Slowest, mean and fastest shard",
            "Steps a second; how far they are apart shows whether shards wait for each other.",
            PER_SECOND,
            (f"min by (trial) ({STEPS})", "{{trial}} slowest"),
            (f"avg by (trial) ({STEPS})", "{{trial}} mean"),
            (f"max by (trial) ({STEPS})", "{{trial}} fastest"),
        ).min(0),
        curves(
            8,
            "The ten slowest shards",
            "Steps that each makes a second.",
            PER_SECOND,
            (ten(f"sum by (trial, node) ({STEPS})", how="avg", least=True), BY_NODE),
        ).min(0),
        heat(
            8,
            "Shards by their steps",
            "How many shards make how many steps a second.",
            PER_SECOND,
            f"sum by (trial, node) ({STEPS})",
            of_histogram=False,
        ),
    ]


def time() -> list[Any]:
    """Where their time goes."""
    going = rate("edgebed_shard_phase_seconds_total", "phase", SHARDS)
    by = "trial, node"
    spent = f"sum by ({by}, phase) (increase(edgebed_shard_phase_seconds_total{{{SHARDS}}}[$__range]))"
    return [
        colored(
            stacked(
                12,
                "Phases over time",
                "Share of their time that all chosen shards go forward, learn, teach, copy states, or wait.",
                "percentunit",
                (f"{going} / on () group_left () (sum({going}) > 0)", "{{phase}}"),
            ).max(1),
            PHASES,
        ),
        colored(
            bar_each(
                12,
                "Phases by shard",
                "Share of a shard's time in each phase, over the time shown; inputs and answers are waited for.",
                "percentunit",
                share(spent, by),
                ("trial", "node"),
                "phase",
            ).max(1),
            PHASES,
        ),
    ]


def queues() -> list[Any]:
    """What has come, and what has not been answered."""
    queue = "edgebed_shard_queue_length"

    def ten_longest(name: str) -> str:
        return ten(f'max by (trial, node) ({queue}{{{SHARDS},queue=~"{name}"}})')

    return [
        curves(
            8,
            "Inputs that wait",
            "The ten shards with the most inputs from below that they have not used yet.",
            "none",
            (ten_longest("inputs"), BY_NODE),
        )
        .min(0)
        .axis_soft_max(1),
        curves(
            8,
            "Outputs without an answer",
            "The ten shards with the most; at the scenario's shards.queue a shard waits for room.",
            "none",
            (ten_longest("unanswered"), BY_NODE),
        )
        .min(0)
        .axis_soft_max(1),
        curves(
            8,
            "Gradients, messages and jobs that wait",
            "The ten nodes with the most gradients not used, messages not sent, or jobs of modules to do.",
            "none",
            (ten_longest("gradients|unsent|jobs"), BY_NODE),
        )
        .min(0)
        .axis_soft_max(1),
    ]


def modules() -> list[Any]:
    """What is predicted in place of what one would have to wait for."""
    taught = HERE + ',shard=~"$shard"'
    by = "trial, shard, predicts"
    lessons = rate("edgebed_shard_taught_total", by, taught)
    losses = rate("edgebed_shard_taught_loss_total", by, taught)
    of_module = "{{trial}} {{shard}} {{predicts}}"
    return [
        curves(
            12,
            "Loss of the modules",
            "Squared error of a shard's predicted gradients or inputs, mean of its lessons; the ten largest.",
            "none",
            (ten(ratio(losses, lessons), by), of_module),
        ).min(0),
        curves(
            12,
            "Lessons of the modules",
            "How often each shard's module is taught each second; the ten least.",
            PER_SECOND,
            (ten(lessons, by, "avg", least=True), of_module),
        ).min(0),
    ]


def traffic() -> list[Any]:
    """What shards send each other."""

    def sent(kind: str) -> str:
        return rate("edgebed_client_egress_bytes_total", "trial, node", f'{SHARDS},kind="{kind}"')

    return [
        curves(
            8,
            "Activations sent",
            "Payload of the outputs that a shard hands up each second; the ten largest.",
            "Bps",
            (ten(sent("activation")), BY_NODE),
        ).min(0),
        curves(
            8,
            "Gradients sent",
            "Payload of the gradients that a shard hands down each second, or a node of modules; the ten largest.",
            "Bps",
            (ten(sent("gradient")), BY_NODE),
        ).min(0),
        stacked(
            8,
            "Sent by kind of message",
            "Payload that all chosen shards send each second.",
            "Bps",
            (rate("edgebed_client_egress_bytes_total", "trial, kind", SHARDS), "{{trial}} {{kind}}"),
        ),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "": standing(),
        "Pace": or_else(NONE, pace()),
        "Time": or_else(NONE, time()),
        "Queues": or_else(UNTOLD, queues()),
        "Modules": or_else(NO_MODULES, modules()),
        "Traffic": or_else(UNTOLD, traffic()),
    }
    shards = f"label_values(edgebed_shard_phase_seconds_total{{{HERE}}}, node)"
    chosen = [run_variable(), trial_variable(), several("shard", "Shard", shards)]
    about = "How fast is each shard of a model, what does it wait for, and what does it learn?"
    return whole(NAME, "Layers", about, chosen, [trials_begin(), *events()], panels)
