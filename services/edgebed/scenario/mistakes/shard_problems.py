"""What does not fit together in a trial whose model lies on several nodes, or does not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgebed.algorithms.registry import compresses_down, has_modules, rule_of
from edgebed.core.plan import Waiting
from edgebed.scenario.choices import Split
from edgebed.scenario.mistakes.problems import Problem, choose

if TYPE_CHECKING:
    from edgebed.scenario.schema import TrialSection

LEARNING = ("optimizer", "module_optimizer")
"""Kinds of optimizers whose learning rate is above 0: that of layers and heads, and that of modules."""
OF_WORKERS: dict[str, tuple[object, str]] = {
    "compression_time": (0.0, "shards push no updates"),
    "exchange_time": (0.0, "shards push no updates"),
    "split": (Split(), "all shards see the same examples"),
    "min_examples": (1, "all shards see the same examples"),
}
"""Keys of the task that are for workers which push, with their defaults and why shards have none."""
SECTIONS = {"store": "shards.traffic: store", "modules": "shards.modules: apart"}
"""Sections of nodes that serve shards -> the choice that there is one."""


def shard_problems(trial: "TrialSection") -> Iterator[Problem]:
    """Yield settings that contradict the method, or each other."""
    if not trial.method.is_layerwise:
        for key in ("shards", *SECTIONS):
            if getattr(trial, key) is not None:
                why = f"the method '{trial.method.name}' has the whole model on every worker"
                yield Problem((key,), why, at_key=True)
        if trial.pull == "changed-since" and compresses_down(trial.method):
            why = "the method's downlink says already what is sent of the model; leave out pull, or method.downlink"
            yield Problem(("pull",), why)
        return
    for key, choice in SECTIONS.items():
        if getattr(trial, key) is not None and key not in trial.serving:
            yield Problem((key,), f"there is no such node without {choice}", at_key=True)
    yield from _of_modules(trial)
    workers = [name for group in trial.roster.values() if group.role == "worker" for name in group.nodes]
    for k, name in enumerate(trial.sharding.frozen if trial.sharding else ()):
        if name not in workers:
            known = choose(name, workers)
            yield Problem(("shards", "frozen", str(k)), f"no worker '{name}'; {known}", choice=known)
    yield from _of_workers(trial)


def _of_modules(trial: "TrialSection") -> Iterator[Problem]:
    """What is asked of modules that the method has not, or not like that."""
    learning, rule = trial.method.parts["learning"].name, rule_of(trial.method)
    if "modules" in trial.serving and not rule.modules_apart:
        yield Problem(("shards", "modules"), f"'{learning}' has no modules that lie apart")
    elif "modules" in trial.serving and rule.send_every > 1:
        why = "modules that lie apart are asked at every step; use modules: beside, or leave send_every at 1"
        yield Problem(("shards", "modules"), why)
    if "module_optimizer" in trial.method.parts and not has_modules(trial.method):
        yield Problem(("method", "module_optimizer"), f"'{learning}' has no modules; leave it out")
    if "input_optimizer" in trial.method.parts and not rule.synthetic_inputs:
        yield Problem(("method", "input_optimizer"), f"'{learning}' has no modules that predict inputs; leave it out")
    for kind in LEARNING:
        if kind in trial.method.parts and trial.method.parts[kind].settings.get("learning_rate") == 0:
            why = "0 is not above 0; an input_optimizer alone may have 0, whose modules stay as they were drawn"
            yield Problem(("method", kind, "learning_rate"), why)


def _of_workers(trial: "TrialSection") -> Iterator[Problem]:
    """Yield what workers that push gradients have, and shards have not."""
    if trial.pull != "full":
        yield Problem(("pull",), "shards pull no model; leave it out")
    for key, (left_out, why) in OF_WORKERS.items():
        if getattr(trial.task, key) != left_out:
            yield Problem(("task", key), f"{why}; leave it out")
    for section in ("evaluation", "checkpoints"):
        if getattr(trial, section).every.updates is None:
            yield Problem((section, "every"), "in updates with layer-wise methods: all shards are copied at one step")
    for name, devices in trial.fleet.items():
        if devices.waiting != Waiting():
            yield Problem(("fleet", name, "waiting"), "shards make no pauses; leave it out")
    for k, fault in enumerate(trial.faults):
        if fault.trigger().point is not None:
            yield Problem(("faults", str(k)), "shards do not push; give at or at_update")
