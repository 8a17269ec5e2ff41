"""No false `trusted`: attacks on the conditions of real runs; and no false `degraded`: runs that nobody disturbs.

`scripts/campaign --only tamper` makes every attack at three strengths, and fifty undisturbed runs over drawn scenarios,
in processes and in containers. What came of each is kept as a line of EDGEBED_TAMPERED_FILE, so that a campaign that
was broken off goes on where it was; EDGEBED_TAMPERED_PART=2/4 makes the second quarter of the cases alone, and
EDGEBED_TAMPERED_RUNTIME=process those in processes. Docs: docs/verdict.md.
"""

import functools
import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from live_runs import pids_when_it_trains, run_live
from tampering import ATTACKS, BASE, SCENARIOS, Attack, InContainers, Trial
from warm_command import WarmCommand

from edgebed.emulation.means import why_no_namespaces
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run

pytestmark = [pytest.mark.campaign, pytest.mark.alone]

STRENGTHS = int(os.environ.get("EDGEBED_TAMPERED", "3"))
"""Strengths of each attack that are made; 1: the middle one."""
UNDISTURBED = {1: 3}.get(STRENGTHS, 50)
FILE = Path(os.environ.get("EDGEBED_TAMPERED_FILE", "runs/tampered.jsonl")).absolute()
PART, PARTS = map(int, os.environ.get("EDGEBED_TAMPERED_PART", "1/1").split("/"))
RUNTIMES = os.environ.get("EDGEBED_TAMPERED_RUNTIME", "process docker").split()
DRAWS_MAX = 5
"""Times that an undisturbed run is made whose host others used."""
CAPS_MAX = 0.4
"""Cores of a class together: more nodes that compute all the time wait for each other on two."""
OTHERS_MAX = 0.1
"""Cores that others may use beside an undisturbed run."""


def cases() -> list[Any]:
    """Each attack with each strength, as parameters of a test."""
    found = [
        pytest.param(attack, strength, runtime, id=f"{attack.name}-{strength:g}-{runtime}")
        for runtime in RUNTIMES
        for attack in ATTACKS
        if runtime in attack.runtimes
        for strength in (attack.strengths if STRENGTHS > 1 else attack.strengths[1:2])
    ]
    return found[PART - 1 :: PARTS]


@pytest.fixture(autouse=True)
def _root() -> None:
    if reason := why_no_namespaces():
        pytest.skip(f"no namespaces: {reason}; run the tests as root")


def told(case: str) -> dict[str, Any] | None:
    """What came of a case in a campaign before, if it was made."""
    if not FILE.exists():
        return None
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return next((line for line in reversed(lines) if line["case"] == case), None)


def tell(case: str, **what: Any) -> dict[str, Any]:
    """Keep what came of a case."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"case": case, **what}) + "\n")
    return {"case": case, **what}


def judged(scenario: dict[str, Any], folder: Path, runtime: str, act: Callable[[Trial], None]) -> dict[str, Any]:
    """Run a scenario, with somebody at work as soon as it trains; return verdict, reasons and what else is told."""
    ended, failures = threading.Event(), list[str]()

    def begin(controller: int) -> None:
        try:
            if pids := pids_when_it_trains(folder / "runs", ended):
                threading.Timer(float(scenario["stop"]["time"].removesuffix("s")), ended.set).start()
                in_containers = runtime == "docker"
                run = f"{scenario['name']}/0001"
                act(InContainers.of(controller, run, ended) if in_containers else Trial(controller, pids, ended))
        except Exception as error:  # noqa: BLE001 - what fails in a thread is told by the test
            if not ended.wait(3.0):  # else what it works on has gone with the run
                failures.append(repr(error))

    threads: list[threading.Thread] = []

    def meanwhile(process: WarmCommand, _folder: Path) -> None:
        threads.append(threading.Thread(target=begin, args=(process.pid,)))
        threads[0].start()

    try:
        run_live(scenario, folder, "--runtime", runtime, meanwhile=meanwhile)
    finally:
        ended.set()
        for each in threads:
            each.join(30)
    (trial,) = Run(RunFolder(next(folder.glob("runs/*/0001")))).summary.trials
    assert failures == []
    assert trial.fidelity is not None, trial.reason
    return {
        "outcome": trial.outcome,
        "verdict": trial.fidelity.verdict,
        "reasons": list(trial.fidelity.reasons),
        "updates": trial.updates,
        "closes": trial.accounting is None or trial.accounting.closes,
    }


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("attack", "strength", "runtime"), cases())
def test_no_attack_leaves_a_run_trusted(attack: Attack, strength: float, runtime: str, tmp_path: Path) -> None:
    """The verdict is not `trusted`, one of its reasons begins with the attack's cause, and the accounts close."""
    case = f"{attack.name}-{strength:g}-{runtime}"
    scenario = SCENARIOS[attack.scenario]
    found = told(case)
    if found is None:
        found = tell(case, **judged(scenario, tmp_path / "run", runtime, lambda trial: attack.act(trial, strength)))

    assert found["verdict"] in ("degraded", "unknown"), found
    assert any(reason.startswith(attack.causes) for reason in found["reasons"]), found
    assert found["closes"], found


def drawn(seed: int) -> dict[str, Any]:
    """The scenario of that seed, which two idle cores can hold: caps, links, latency, waits, devices, methods."""
    draw = random.Random(f"undisturbed {seed}")
    classes: dict[str, dict[str, Any]] = {}
    for name in ("one", "two")[: draw.randint(1, 2)]:
        asked: dict[str, Any] = {"count": draw.randint(1, 3)}
        if draw.random() < 0.5:
            cpus = min(draw.choice([0.02, 0.05, 0.1, 0.2]), CAPS_MAX / asked["count"])
            asked |= {"cpus": round(cpus, 2), "memory": "400MiB"}
        if draw.random() < 0.6:
            asked |= {way: f"{draw.randint(1, 20)}mbit" for way in ("uplink", "downlink")}
        if draw.random() < 0.3:
            asked |= {"latency": f"{draw.randint(1, 40)}ms"}
        if "cpus" not in asked:
            asked |= {"waiting": {"exponential": f"{draw.randint(50, 300)}ms"}}
        if random.Random(f"device {seed} {name}").random() < 0.3:
            asked |= {"device": "raspberry-pi-4"}
        classes[name] = asked
    scenario = BASE | {"name": "undisturbed", "seed": seed + 1, "fleet": classes}
    scenario["method"] = draw.choice(["asgd", "adacomp", "dgc", "sync-sgd"])
    if draw.random() < 0.3:
        scenario["server"] = {"uplink": f"{draw.randint(5, 30)}mbit", "downlink": f"{draw.randint(5, 30)}mbit"}
    return scenario


@pytest.mark.timeout(900)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("seed", range(PART - 1, UNDISTURBED, PARTS))
def test_a_run_that_nobody_disturbs_is_trusted(seed: int, runtime: str, tmp_path: Path) -> None:
    """Whatever is asked that this machine can hold. Where others used the host, the run is made again, and counted."""
    case = f"undisturbed-{seed}-{runtime}"
    found = told(case)
    for count in range(DRAWS_MAX if found is None else 0):
        others = list[float]()
        judgement = judged(
            drawn(seed), tmp_path / str(count), runtime, functools.partial(look_at_others, others=others)
        )
        found = tell(case, **judgement, others=max(others, default=0.0), count=count)
        if found["verdict"] == "trusted" or found["others"] <= OTHERS_MAX:
            break

    assert found is not None
    assert found["verdict"] == "trusted", found
    assert found["closes"], found


def look_at_others(trial: Trial, others: list[float]) -> None:
    """Note how many cores are in use by neither the run nor this process, five seconds at a time."""
    before, before_s = used_s(trial.controller), time.monotonic()
    while trial.goes_on(5.0):
        after, now_s = used_s(trial.controller), time.monotonic()
        others.append(((after[0] - before[0]) - (after[1] - before[1])) / (now_s - before_s))
        before, before_s = after, now_s


def used_s(controller: int) -> tuple[float, float]:
    """Return the CPU seconds that the machine's cores were in use, and those that are the run's or this process's.

    The engine and all of its containers count as the run's: it has no other.
    """
    every = psutil.cpu_times()
    roots = [psutil.Process(), psutil.Process(controller)]
    roots += [each for each in psutil.process_iter() if each.name().startswith(("dockerd", "containerd"))]
    own = {each for root in roots for each in (root, *root.children(recursive=True))}
    all_s = every.user + every.nice + every.system + every.irq + every.softirq + every.steal
    return all_s, sum(map(cpu_s, own))


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used; 0 if it has just ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system
