"""Parts and faults by import path: found, checked, tried and refused where they are written."""

import sys
from pathlib import Path

import pytest
from quick_runs import run as run_quickly

import edgebed
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.core.imports import forgetting
from edgebed.planning.checking import check
from edgebed.planning.memory import needs_of
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import resolved_yaml

SIZE = 4810
"""Parameters of the model `small`."""
MODULE = """
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.compressor import Compressor, Piece, sent
from edgebed.algorithms.schedule import Scheduled
from edgebed.algorithms.update import Applied, ModelUpdate

NUMBER = 7


@dataclass(frozen=True, kw_only=True)
class Config:
    name: Literal["all"] = "all"
    fails: Literal["never", "raise", "short", "nothing", "wide", "restore", "pieces"] = "never"
    after: int = 5

    def __post_init__(self):
        if self.after < 0:
            raise ValueError(f"after: {self.after} is below 0")


class All(Compressor):
    copies = 0.0

    def compress(self, vector, memory, at):
        if at.step >= self.config.after:
            if self.config.fails == "raise":
                return vector[[len(vector)]]  # too far
            if self.config.fails == "short":
                return sent(ModelUpdate(self.size, None, vector[1:])), None
            if self.config.fails == "nothing":
                return None
            if self.config.fails == "wide":
                return sent(ModelUpdate(self.size, None, vector.astype("f8"))), None
            if self.config.fails == "pieces":
                return (Piece("strange", ModelUpdate(self.size, None, vector)),), None
        return sent(ModelUpdate(self.size, None, vector)), memory

    def restore(self, pieces):
        if self.config.fails == "restore":
            return np.zeros(3) + np.zeros(4)  # no such shape
        return super().restore(pieces)


class Written(All):
    # writes to what it was given
    def compress(self, vector, memory, at):
        vector += 1
        return super().compress(vector, memory, at)


class Kept(All):
    # remembers in an attribute
    rest = 0

    def compress(self, vector, memory, at):
        self.rest = self.rest + vector
        return super().compress(self.rest, memory, at)


class Drawn(All):
    # draws without a key
    def compress(self, vector, memory, at):
        return super().compress(vector * np.float32(np.random.default_rng().random()), memory, at)


class Remembered(All):
    # as it should: what is remembered is returned
    def compress(self, vector, memory, at):
        rest = vector if memory is None else memory["rest"] + vector
        return super().compress(rest * np.float32(at.draws().random()), None, at)[0], {"rest": rest}


class Plain(Aggregator):
    class Config(Scheduled):
        pass

    def push(self, worker, update, base, told=None):
        self.move(update.indices, update.values)
        self.version += 1
        if self.version > 7:
            raise KeyError("seven")  # too many
        return Applied((worker,), update.indices)


class Holds(Plain):
    # every second push is applied, with the one before it
    def __init__(self, *given):
        super().__init__(*given)
        self.waits = []

    def push(self, worker, update, base, told=None):
        self.waits.append((worker, update))
        return self.expire() if len(self.waits) > 1 else None

    def expire(self):
        if not self.waits:
            return None
        for _, update in self.waits:
            self.move(update.indices, update.values)
        self.version += len(self.waits)
        released, self.waits = tuple(worker for worker, _ in self.waits), []
        return Applied(released, None)


class Held(Holds):
    session = ("waits",)


class Draws(Plain):
    # what no log can hold
    def __init__(self, *given):
        super().__init__(*given)
        self.draws = np.random.default_rng(1)


class Late(Plain):
    # an attribute that a new server has not
    def push(self, worker, update, base, told=None):
        self.last = update
        return super().push(worker, update, base, told)


class Loose(Aggregator):
    class Config:
        pass

    def push(self, worker, update, base, told=None):
        return None


def rule(config):
    return "no rule"
"""
FAULTS = """
from typing import ClassVar

from edgebed.scenario.faults.entry import FaultSection, step
from edgebed.scenario.faults.targets import Target
from edgebed.scenario.faults.triggers import Triggered


class Nap(FaultSection, Triggered):
    kind: ClassVar[str] = "nap"
    nap: Target
    deep: bool = False

    def steps(self, node):
        return (step(0.0, node, "freeze"), step(1.0 / (not self.deep), node, "thaw"))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the scenario is, with modules beside it; what they bring into this process is gone after the test."""
    (tmp_path / "own_all.py").write_text(MODULE)
    (tmp_path / "own_torch.py").write_text(f"import own_heavy\n{MODULE}")
    (tmp_path / "own_heavy.py").write_text("if True:\n    from torch import nn\n")
    (tmp_path / "own_lazy.py").write_text(f"{MODULE}\n\ndef model():\n    import torch\n")
    (tmp_path / "own_faults.py").write_text(FAULTS)
    monkeypatch.chdir(tmp_path)
    with forgetting(tmp_path, tmp_path / "beside"):
        yield tmp_path


def line_of(text: str, module: str = MODULE) -> int:
    """Where in a module something is written."""
    return 1 + module[: module.index(text)].count("\n")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("compression=own_al:All", "there is no module 'own_al' in "),
        ("compression=own_all:Al", "own_all:Al: module 'own_all' has no 'Al'. Did you mean 'All'?"),
        (
            "compression=own_all:Zzz",
            "own_all:Zzz: module 'own_all' has no 'Zzz'. It has: All, Config, Drawn, Draws, Held",
        ),
        ("compression=own_all:NUMBER", "'NUMBER' is a int, not a function or class"),
        ("compression=own_all:Plain", "not a subclass of edgebed.algorithms.compressor.Compressor, as a compression"),
        ("aggregation=own_all:All", "not a subclass of edgebed.algorithms.aggregator.Aggregator, as an aggregation"),
        ("aggregation=own_all:Loose", "own_all:Loose: its Config is no dataclass"),
        (
            "local_work=own_all:All",
            "not a subclass of edgebed.algorithms.local_work.base.LocalWork, as a local work is",
        ),
        ("compression={name: own_all:All, aftr: 3}", "compression.aftr: unknown setting of compression 'own_all:All'"),
        ("compression={name: own_all:All, after: x}", "compression.after: not a whole number: 'x'"),
        ("compression={name: own_all:All, after: -1}", "compression.after: -1 is below 0"),
        ("compression={name: own_all:All, fails: no}", "compression.fails: unknown: 'no'"),
        ("compression=own_torch:All", "its module imports torch (own_heavy.py:2), and the parameter server has numpy"),
        ("downlink=own_torch:All", "its module imports torch (own_heavy.py:2), and the parameter server has numpy"),
    ],
)
def test_a_part_that_cannot_be_used_is_refused_where_it_is_written(folder, problems, good, option, says):
    """With what is there instead."""
    (problem,) = problems(good, f"method.{option}")

    assert problem.startswith(f"--set method.{option}: ")
    assert says in problem


def test_the_place_in_a_file_is_named(folder, problems, good):
    """As of every other value."""
    text = good.replace("method: adacomp", "method: { preset: adacomp, compression: own_all:Al }")
    (problem,) = problems(text)

    assert problem.startswith("s.yaml:7:41: method.compression: own_all:Al: module")


def test_what_only_a_function_imports_is_no_matter(folder, load, good):
    """A model may stand beside a part, if torch is imported where it is used."""
    assert load(good, "method.compression=own_lazy:All")


def test_settings_of_an_own_part_are_as_of_any_other(folder, load, good):
    """A name alone, one by one on top of it, defaults filled in; the resolved form gives the same method."""
    scenario = load(good, "method.compression=own_all:All", "method.compression.after=9")
    (trial,) = scenario.trials.values()
    part = trial.method.parts["compression"]

    assert (part.name, part.settings) == ("own_all:All", {"fails": "never", "after": 9})
    (again,) = load(resolved_yaml(scenario)).trials.values()
    assert again.method == trial.method


@pytest.mark.parametrize(
    ("settings", "says", "at"),
    [
        ("fails: restore", "failed in restore: ValueError: operands could not be broadcast", "# no such shape"),
        ("fails: raise, after: 1", "failed in compress: IndexError: index 4810 is out of bounds", "# too far"),
        ("fails: short, after: 0", "failed in compress: returned a piece 'update' with 4809 values", "def compress"),
        ("fails: nothing, after: 0", "failed in compress: returned None, not (pieces, memory)", "def compress"),
        ("fails: wide, after: 0", "failed in compress: returned a piece 'update' with float64 values", "def compress"),
        ("fails: pieces, after: 0", "returned the pieces strange, where its `travels` says update", "def compress"),
    ],
)
def test_a_part_is_tried_with_the_model_before_anything_starts(folder, good, settings, says, at):
    """By `validate` too; the line is that of the user's own file."""
    (folder / "s.yaml").write_text(good)
    checked = check(folder / "s.yaml", [f"method.compression={{name: own_all:All, {settings}}}"])
    (problem,) = checked.problems

    assert says in problem
    assert problem.endswith(f"({folder}/own_all.py:{line_of(at)})")


@pytest.mark.parametrize(
    ("option", "says", "at"),
    [
        (
            "compression={name: own_all:All, fails: raise}",
            (
                "edge-0, step 5: compression own_all:All failed in compress: "
                f"IndexError: index {SIZE} is out of bounds for axis 0 with size {SIZE}"
            ),
            "# too far",
        ),
        (
            "aggregation=own_all:Plain",
            "server, step 3 of edge-1: aggregation own_all:Plain failed in push: KeyError: 'seven'",
            "# too many",
        ),
    ],
)
def test_a_part_that_fails_later_ends_the_trial_with_node_step_and_line(folder, good, option, says, at):
    """And with no frame of edgebed's; the run's folder says so, too."""
    (folder / "s.yaml").write_text(good)
    sets = [f"method.{option}", "method.local_work=gradient-step", "stop.updates=40", "fleet.edge.memory=null"]
    with pytest.raises(EdgebedError) as caught:
        run_quickly("s.yaml", runtime="simulation", set=sets, runs_dir=folder / "runs")
    run = edgebed.load("small", runs_dir=folder / "runs")

    assert str(caught.value) == f"{says} ({folder}/own_all.py:{line_of(at)})"
    assert run.exit_code == 3
    assert says in next(iter(run.trials.values())).summary.reason


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Written", "own_all:Written failed in compress: ValueError: output array is read-only"),
        ("Kept", "own_all:Kept: compress is no function of its arguments: with the same ones it made something else"),
        ("Drawn", "own_all:Drawn: compress is no function of its arguments: with the same ones it made something else"),
        ("Remembered", ""),
    ],
)
def test_a_compression_that_could_not_be_repeated_is_refused(folder, good, name, says):
    """The simulation may call it ahead of time, in another process, and once more."""
    (folder / "s.yaml").write_text(good)
    problems = check(folder / "s.yaml", [f"method.compression=own_all:{name}"]).problems

    assert [says in problem for problem in problems] == ([True] if says else [])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "Holds",
            "own_all:Holds: a server that goes on from a checkpoint, where all workers join again, waits",
        ),
        (
            "Draws",
            "own_all:Draws cannot be stored, so no server could go on from a log or a checkpoint: draws: ",
        ),
        ("Late", "own_all:Late cannot be stored, so no server could go on from a log or a checkpoint: state: "),
        ("Held", ""),
    ],
)
def test_an_aggregation_that_no_server_could_go_on_with_is_refused(folder, good, name, says):
    """It is stored and made anew before anything starts; its author lists nothing but what is held."""
    (folder / "s.yaml").write_text(good)
    problems = check(folder / "s.yaml", [f"method.aggregation=own_all:{name}"]).problems

    assert [says in problem for problem in problems] == ([True] if says else [])


def test_a_run_with_own_parts_is_resumed_from_its_own_folder(folder, good):
    """The resolved scenario lies elsewhere; modules are found where the scenario file was."""
    (folder / "beside").mkdir()
    for name in ("own_all.py", "own_faults.py"):
        (folder / name).rename(folder / "beside" / name)
    (folder / "beside/s.yaml").write_text(good)
    sets = ["method.compression=own_all:All", "faults=[{own_faults:Nap: edge-0, at: 10ms}]", "fleet.edge.memory=null"]
    run = run_quickly("beside/s.yaml", runtime="simulation", set=sets, runs_dir="runs")

    with pytest.raises(ScenarioError, match="is complete: there is nothing to resume"):
        edgebed.resume(str(run.path), runs_dir="runs")


def test_what_an_own_aggregation_holds_is_counted(folder, load, good):
    """One that says nothing is taken to keep a model for each worker."""
    option = "fleet.edge.count=40"
    (plain,) = plan_trials(load(good, option, "method={preset: asgd, aggregation: {staleness: none}}"))
    (own,) = plan_trials(load(good, option, "method={preset: asgd, aggregation: own_all:Plain}"))

    more = needs_of(own)["server"].bytes - needs_of(plain)["server"].bytes
    assert more == 40 * 4 * SIZE


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_fault_of_ones_own_is_an_entry_like_any_other(folder, load, good):
    """Its steps are in the plan, its name is that of its kind; the resolved form has the import path."""
    scenario = load(good, "faults=[{own_faults:Nap: edge, at: 1s}]")
    (planned,) = plan_trials(scenario)

    assert [(fault.name, fault.node) for fault in planned.plan.faults] == [("nap-1", "edge-0"), ("nap-1", "edge-1")]
    again = load(resolved_yaml(scenario))
    assert resolved_yaml(again) == resolved_yaml(scenario)
    assert "own_faults:Nap: edge" in resolved_yaml(scenario)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{own_faults:Nup: edge, at: 1s}", "own_faults:Nup: module 'own_faults' has no 'Nup'. Did you mean 'Nap'?"),
        ("{own_fault:Nap: edge, at: 1s}", "there is no module 'own_fault'"),
        ("{own_faults:Target: edge, at: 1s}", "own_faults:Target: "),
        ("{own_faults:Nap: edg, at: 1s}", "no node or class 'edg'"),
        ("{own_faults:Nap: edge, at: 1s, dep: true}", "unknown key; did you mean 'deep'?"),
        ("{own_faults:Nap: edge, at: 1s, deep: true}", "it failed: ZeroDivisionError: "),
        ("{own_faults:Nap: edge}", "when? give at, at_update, before, during or after"),
    ],
)
def test_a_fault_that_cannot_be_used_is_refused_where_it_is_written(folder, problems, good, entry, says):
    """With what is there instead."""
    (problem,) = problems(good, f"faults=[{entry}]")

    assert problem.startswith(f"--set faults=[{entry}]: faults.0")
    assert says in problem


def test_modules_looked_at_for_one_scenario_are_forgotten(folder, good):
    """Another folder may have another of that name."""
    (folder / "s.yaml").write_text(good)

    assert check(Path("s.yaml"), ["method.compression=own_all:All", "fleet.edge.memory=null"]).valid
    assert "own_all" not in sys.modules


LOCAL = """
import numpy as np

from edgebed.algorithms.local_work.base import LocalWork, one

class Steps(LocalWork):
    def __init__(self, config, is_buffer=None):
        super().__init__(config, is_buffer)
        self.kept = None
        self.made = 0

    def batches(self, examples, batch_size):
        return 2

    def work(self, slope, loss, memory, at):
        return one(slope, loss)

    def run(self, gradient, vectors, batches, memory, at):
        return self.work(*gradient(vectors["theta"], batches[0]), memory, at)

class Velocity(Steps):
    def work(self, slope, loss, memory, at):
        self.kept = slope if self.kept is None else np.float32(0.9) * self.kept + slope
        return one(self.kept, loss)

class Counts(Steps):
    def work(self, slope, loss, memory, at):
        self.made += 1
        return one(slope, loss)

SEEN = []

class Elsewhere(Steps):
    def work(self, slope, loss, memory, at):
        SEEN.append(loss)
        return one(np.float32(len(SEEN)) * slope, loss)

class Draws(Steps):
    draws = np.random.default_rng(1)

    def work(self, slope, loss, memory, at):
        return one(slope + self.draws.standard_normal(len(slope), dtype=np.float32), loss)

class Writes(Steps):
    def run(self, gradient, vectors, batches, memory, at):
        theta = vectors["theta"]
        theta -= 1.0
        return super().run(gradient, vectors, batches, memory, at)

class Fades(Steps):
    def work(self, slope, loss, memory, at):
        if memory is None:
            return one(slope, loss, {"moments": [slope.copy()]})
        memory["moments"][0] *= 0.9
        return one(slope, loss, memory)

class Wide(Steps):
    def work(self, slope, loss, memory, at):
        return one(slope.astype(np.float64), loss)

class Pair(Steps):
    def work(self, slope, loss, memory, at):
        return slope, loss

class Other(Steps):
    def work(self, slope, loss, memory, at):
        return one(slope, loss)._replace(vectors={"c": slope})

class Silent(Steps):
    def work(self, slope, loss, memory, at):
        return one(slope, loss)._replace(measures={})

class Remembers(Steps):
    # as it should: what is remembered is returned, and chance has a key
    def work(self, slope, loss, memory, at):
        kept = slope if memory is None else np.float32(0.9) * memory["kept"] + slope
        return one(kept * np.float32(at.draws().random()), loss, {"kept": kept, "step": at.step})
"""


@pytest.mark.parametrize(
    ("work", "says"),
    [
        ("Velocity", "run is no function of its arguments: it changed kept, so runs could not be repeated"),
        ("Counts", "run is no function of its arguments: it changed made,"),
        ("Elsewhere", "run is no function of its arguments: with the same ones it made something else,"),
        ("Draws", "run is no function of its arguments: with the same ones it made something else,"),
        ("Writes", "failed in run: ValueError: output array is read-only"),
        ("Fades", "failed in run: ValueError: output array is read-only"),
        ("Wide", "failed in run: returned theta as a vector that is float64 (64,), not float32 (64,)"),
        ("Pair", "failed in run: returned a tuple, not a Done of vectors, measures and memory"),
        ("Other", "failed in run: returned vectors that are a dict, not a dict of theta"),
        ("Silent", "failed in run: returned measures without the number `loss`"),
    ],
)
def test_local_work_that_is_no_function_is_refused(folder, good, work, says):
    """What it remembers would be another in each process that computes; what it may not do is found before a run."""
    (folder / "own_local.py").write_text(LOCAL)
    (folder / "s.yaml").write_text(good)

    (problem,) = check(folder / "s.yaml", [f"method.local_work=own_local:{work}"]).problems

    assert f"local work own_local:{work}" in problem
    assert says in problem


@pytest.mark.parametrize("work", ["Steps", "Remembers"])
def test_local_work_that_is_a_function_is_taken(folder, good, work):
    """It may have attributes, as long as they stay as they are; what it remembers is handed in."""
    (folder / "own_local.py").write_text(LOCAL)
    (folder / "s.yaml").write_text(good)

    assert not check(folder / "s.yaml", [f"method.local_work=own_local:{work}"]).problems
