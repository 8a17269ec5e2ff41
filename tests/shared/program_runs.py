"""Finished runs of programs on disk, as a run would have left them: folder, manifest, scenario, plans and journals."""

from collections.abc import Callable
from pathlib import Path

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder
from edgebed.planning.program_plans import plan_programs
from edgebed.running.results import Run
from edgebed.scenario.load import load_scenario, resolved_yaml

SCENARIO = r"""
name: told
question: Which link is better?
program: { run: ./app, measures: { loss: 'loss=([-+.e0-9]+)', step: 'step (\d+)' } }
fleet: { home: { count: 2, uplink: 10mbit, downlink: 10mbit } }
expect: { exit_code: "== 0", final_loss: "<= 0.9" }
variants:
  slow: { fleet: { home: { uplink: 1mbit } } }
  fast: { fleet: { home: { uplink: 20mbit } } }
"""
Loss = Callable[[str, int, int], float]
"""The loss that a trial tells with a seed at a step."""


def half_and_half(trial: str, seed: int, step: int) -> float:
    """A loss that falls in the same way in each trial, and differs by the seed."""
    return 1 / (1 + step) + 0.01 * seed


def finished_run(root: Path, *, seed: int, loss: Loss = half_and_half, sets: tuple[str, ...] = ()) -> Run:
    """A run of both variants: three steps a second apart, 1 MB a node and second over `slow`, 2 MB over `fast`."""
    file = root / "told.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCENARIO)
    scenario = load_scenario(file, (f"seed={seed}", *sets))
    planned = plan_programs(scenario)
    folder = RunFolder.create(root / "runs", scenario.name)
    folder.write_manifest(
        seed=seed, runtime="process", command=["edgebed"], trials=[each.plan.trial for each in planned],
        scenario_file=str(file), sets=sets, code="c0de", runs_programs=True,
        options={"runtime": "process", "emulation": "auto", "trace": False, "force": False},
    )  # fmt: skip
    folder.write_scenario(resolved_yaml(scenario))
    for each in planned:
        trial = folder.trial(each.plan.trial)
        trial.make(each.plan)
        with JournalWriter(trial.journal) as journal:
            for t, node, record in entries(each.plan, loss):
                journal.write(t, node, record)
    return Run(folder)


def entries(plan: ProgramsPlan, loss: Loss = half_and_half) -> list[tuple[float, str, records.Record]]:
    """What the journal of such a trial has: home-1 is killed once, and comes back."""
    names = [node.node for node in plan.nodes]
    states = [(1.0, "started"), (2.0, "ready"), (2.0, "running")]
    found: list[tuple[float, str, records.Record]] = [
        (t, "controller", records.Node(name=name, state=state, incarnation=1)) for t, state in states for name in names
    ]
    found.append(
        (2.0, "controller", records.Trial(
            scenario=plan.scenario, trial=plan.trial, seed=plan.seed, runtime="process", nodes=2, parameters=0,
            runs_programs=True,
        ))
    )  # fmt: skip
    a_second = 1_000_000 if plan.trial == "slow" else 2_000_000
    for step in range(3):
        t = 3.0 + step
        for name in names:
            told = {"loss": loss(plan.trial, plan.seed, step), "step": float(step)}
            found += [(t, name, records.Measured(measured=told)), (t, name, used(a_second * (1 + step)))]
    found += [
        (5.2, "controller", records.Exited(name="home-1", incarnation=1, signal="SIGKILL", asked=True)),
        (5.2, "controller", records.Node(name="home-1", state="died", incarnation=1)),
        (5.5, "controller", records.Node(name="home-1", state="started", incarnation=2)),
        (5.8, "home-1", used(500_000)),
    ]
    found += [(6.0, "controller", records.Exited(name=name, incarnation=1, code=0)) for name in names]
    found += [(6.0, "controller", records.Node(name=name, state="stopped", incarnation=1)) for name in names]
    return [*found, (6.0, "controller", records.Ended(outcome="completed", reason="all programs have ended"))]


def used(sent: int) -> records.Usage:
    """What a witness tells of a node that sent so many bytes, and had half as many."""
    return records.Usage(
        time_s=1.0, cpu_s=0.25, starved_s=0.0, uplink_bytes=sent, downlink_bytes=sent // 2, memory_bytes=9_000_000
    )
