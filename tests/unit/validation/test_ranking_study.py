"""The study of ranks: what is stated before the first run, which runs count, what is run again, and the command."""

import itertools
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from command_line import Command, command_line
from finished_runs import RISING, SCENARIO, finished_run
from ruamel.yaml import YAML

from edgebed.core import records
from edgebed.core.errors import EdgebedError, InfrastructureError, ScenarioError
from edgebed.core.package import fingerprint
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import write_atomically
from edgebed.running.run import without_report
from edgebed.scenario.load import load_scenario
from edgebed.studies.cells.jobs import JobResult, JobRunner
from validation.__main__ import app
from validation.ranking import kept_trials
from validation.ranking import preregistration as stating
from validation.ranking.generate import draw_scenario
from validation.ranking.kept_trials import KeptTrials
from validation.ranking.preregistration import Stated, begin_study, read_stated, scenario_files, state
from validation.ranking.ranking_runs import RankingRuns, RunKey

TINY = {
    "name": "tiny",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "fleet": {"edge": {"count": 2, "waiting": "10ms"}},
    "evaluation": {"every": "10 updates"},
    "stop": {"updates": 20},
    "variants": {"asgd": {"method": "asgd"}, "slower": {"method": "asgd", "fleet": {"edge": {"waiting": "30ms"}}}},
}


@pytest.fixture
def validate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))

    return command_line(monkeypatch, capsys, app)


@pytest.fixture(autouse=True)
def quick_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange takes four milliseconds here, restarts a second or two; tests/process measures real ones."""
    monkeypatch.setattr(stating, "exchange_s", lambda *_: 0.004)
    monkeypatch.setattr(stating, "restart_times", lambda *_: {"server": 1.0, "others": 2.0})


def study(scenario: dict, folder: Path, **settings) -> RankingRuns:
    """A study of one scenario that was not drawn."""
    file = folder / "scenario.yaml"
    with file.open("w") as stream:
        YAML().dump(scenario, stream)
    name = scenario["name"]
    given = {"seed": 1, "scenarios": 1, "seeds": 2, "runtime": "process", "margins": {"time": 0.05, **stating.MARGINS}}
    stated = Stated(**given | {"started": "2020-01-01T00:00:00+00:00", "drawn": {name: ("plain",)}} | settings)
    kept = KeptTrials(folder / "trials.jsonl", {name: file}, since=stated.started)
    return RankingRuns(stated=stated, files={name: file}, root=folder / "runs", kept=kept)


def finished(
    runs: RankingRuns, accuracies=RISING, *, seed: int = 1, runtime: str = "process", started: str = "", **manifest
) -> None:
    """A finished run of the scenario of `finished_runs`, of which nothing is asked that could fail."""
    options = {"runtime": runtime, "emulation": "auto"}
    run = finished_run(
        runs.root, dict.fromkeys(SCENARIO["variants"], accuracies), seed=seed,
        **{"runtime": runtime, "options": options, "code": fingerprint()} | manifest,
    )  # fmt: skip
    if started:
        write_atomically(run.folder.manifest, msgspec.json.encode(run.folder.read_manifest() | {"started": started}))
    write_atomically(run.folder.summary, run.summary_json())


def test_what_is_stated_comes_first_and_is_not_changed_after(tmp_path: Path) -> None:
    """Margins, seeds and scenarios are in the folder before any run; a study that is resumed keeps to them."""
    wanted = state(scenarios=2, seed=3, seeds=2, runtime="process", margin=0.03)
    said: list[str] = []
    begun = begin_study(wanted, tmp_path, said.append, resume=False)
    there = read_stated(tmp_path)

    assert begun == there == wanted
    assert there.margins["time"] == 0.03
    files = scenario_files(there, tmp_path)
    assert list(files) == ["ranks-3-000", "ranks-3-001"] == list(there.drawn)
    assert any("measuring what" in line for line in said)
    written = YAML(typ="safe").load(files["ranks-3-000"])
    times = [variant.pop("task") for variant in written["variants"].values()]
    assert len({each["gradient_time"] for each in times}) == 1, "methods with the same task have the same time"
    assert {each["exchange_time"] for each in times} == {"4ms"}
    assert written == draw_scenario(3, 0).document
    with_restart = YAML(typ="safe").load(files["ranks-3-001"])
    assert "fault: restart" in there.drawn["ranks-3-001"]
    assert with_restart["restart_time"] == {"server": "1s", "others": "2s"}
    for file in files.values():
        load_scenario(file, ())
    before = {name: file.read_bytes() for name, file in files.items()}

    again = begin_study(msgspec.structs.replace(wanted, started="later"), tmp_path, said.append, resume=True)
    assert again == wanted
    assert {name: file.read_bytes() for name, file in files.items()} == before
    with pytest.raises(ScenarioError, match=r"--margin: 5%, but .*stated.json states 3%; nothing is changed after the"):
        begin_study(msgspec.structs.replace(wanted, margins={"time": 0.05}), tmp_path, said.append, resume=True)


def test_a_study_at_the_edges_is_one_of_its_own(tmp_path: Path) -> None:
    """With its name, two methods a scenario, and the times of restarts where workers come back; resumed as stated."""
    wanted = state(scenarios=4, seed=36, seeds=2, runtime="process", drawing="edges")
    assert (wanted.name, wanted.methods) == ("ranks-36-edges-process", 2)
    begun = begin_study(wanted, tmp_path, lambda _: None, resume=False)

    assert read_stated(tmp_path) == begun
    files = scenario_files(begun, tmp_path)
    assert list(files) == [f"ranks-36-edges-{number:03}" for number in range(4)]
    written = {name: YAML(typ="safe").load(file) for name, file in files.items()}
    assert all(len(each["variants"]) == 2 for each in written.values())
    assert [name for name, each in written.items() if "restart_time" in each] == ["ranks-36-edges-003"]
    assert (
        files["ranks-36-edges-003"]
        .read_text()
        .startswith("# Drawn by `scripts/validate ranks --drawing edges --seed 36`")
    )
    with pytest.raises(ScenarioError, match=r"--drawing: usual, but .*stated.json states edges"):
        begin_study(msgspec.structs.replace(wanted, drawing="usual"), tmp_path, lambda _: None, resume=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"drawing": "others"}, "--drawing: 'others' is none of usual, edges"),
        ({"runtime": "simulation"}, "--runtime: simulation is not live"),
        ({"scenarios": 0}, "--scenarios: 0 is below 1"),
        ({"seeds": 1}, "--seeds: 1 is below 2"),
        ({"seed": -1}, "--seed: -1 is below 0"),
        ({"margin": 1.0}, "--margin: 1 is no share"),
    ],
)
def test_what_makes_no_study_is_refused(settings: dict, said: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(ScenarioError, match=said):
        state(**{"scenarios": 1, "seed": 1, "seeds": 2, "runtime": "process"} | settings)


def test_live_trials_count_by_plan_and_conditions(tmp_path: Path) -> None:
    """Not those of before, of another emulation or seed, or that did not do what was asked; the first one counts."""
    runs = study(SCENARIO, tmp_path)
    key = RunKey("pair", 1, "process")
    assert runs.missing(key) == ["asgd", "adacomp"]

    finished(runs, started="2019-12-31T23:59:59+00:00")
    finished(runs, options={"emulation": "model"})
    finished(runs, seed=2)
    assert runs.attempts(key, "asgd") == runs.attempts(key, "adacomp")
    assert runs.attempts(key, "asgd").others == ()
    finished(runs, RISING[:3])
    attempts = runs.attempts(key, "asgd")
    assert attempts.counted is None
    assert attempts.others == ("pair/0004, asgd: it made 200 of 300 updates: updates",)
    finished(runs)
    finished(runs)
    counted = runs.attempts(key, "asgd").counted
    assert counted is not None
    assert "0005" in counted.run
    assert runs.missing(key) == []


def test_a_trial_that_does_not_count_keeps_what_is_measured_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time stands beside that of the trial that counts, and no other figure has anything of it."""
    runs = study(SCENARIO, tmp_path)
    monkeypatch.setattr(kept_trials, "_why_not", lambda *_, **__: "degraded: host CPU")
    finished(runs)
    for method in SCENARIO["variants"]:
        assert runs.attempts(RunKey("pair", 1, "process"), method).times_s == [(3.0, None)]
    monkeypatch.undo()
    monkeypatch.setattr(stating, "exchange_s", lambda *_: 0.004)
    finished(runs, RISING[:3])
    for seed, runtime in itertools.product((1, 2), ("simulation", "process")):
        finished(runs, seed=seed, runtime=runtime)
    found = runs.evaluate()

    assert (found.again.trials, found.again.without_time, found.again.compared) == (4, 2, 2)
    assert (found.again.ratio, found.again.size_p95) == (1.0, 0.0)
    assert found.links == {kept_trials.NONE_ASKED: found.live_trials}
    assert len(found.drawn_again) == 4
    lines = [json.loads(line) for line in runs.kept.path.read_text().splitlines()]
    refused = [line for line in lines if line["why_not"]]
    assert [bool(line["measures"]) for line in refused] == [True, False] * 2
    assert {line["links"] for line in lines} == {kept_trials.NONE_ASKED, ""}


def test_a_line_says_what_held_the_links(tmp_path: Path) -> None:
    """As nodes told of which anything is asked; where none told, or in lines of before, that is not known."""
    linked = SCENARIO | {"fleet": {"edge": {"count": 2, "uplink": "1mbit"}}}
    for place, mechanisms in enumerate(((), ("model",), ("tc", "tc", "none"))):
        run = finished_run(tmp_path / str(place), {"asgd": RISING}, scenario=linked, runtime="process")
        trial = run.trials["asgd"]
        with JournalWriter(trial.folder.journal) as journal:
            for node, mechanism in zip(("edge-0", "edge-1", "server"), mechanisms, strict=False):
                journal.write(5.0, node, records.Link(mechanism=mechanism, uplink_asked=1_000_000))
        assert kept_trials.held_by(trial.plan, trial.series) == "".join(mechanisms[:1])
    old = msgspec.json.decode(
        b'{"scenario":"a","file":"f","method":"m","seed":1,"runtime":"process","run":"r","started":"s","code":"c"}',
        type=kept_trials.KeptTrial,
    )
    assert (old.links, old.measures) == ("", {})


def test_a_trial_whose_conditions_did_not_hold_is_run_again_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as was stated, each time alone if others count already; then it is left out, and all tries are named."""
    runs, asked = study(SCENARIO, tmp_path, seeds=2), []

    def run(_: JobRunner, job) -> JobResult:
        asked.append((job.runtime, job.set, job.variants))
        if job.set == ("seed=1",) and job.runtime == "process":
            finished(runs, RISING[:3])
            return JobResult()
        finished(runs, seed=int(job.set[0][-1]), runtime=job.runtime)
        return JobResult()

    monkeypatch.setattr(JobRunner, "run", run)
    runs.make(without_report, None, None)

    assert asked[:2] == [("simulation", (f"seed={seed}",), ("asgd", "adacomp")) for seed in (1, 2)]
    assert asked[2:] == [("process", (f"seed={seed}",), ("asgd", "adacomp")) for seed in (1, 1, 1, 2)]
    with pytest.raises(InfrastructureError, match="the first that is missing: pair, seed 1, process, asgd: pair/0005"):
        runs.evaluate()


def test_a_simulated_trial_counts_only_if_this_code_made_it(tmp_path: Path) -> None:
    """The simulation is what is tested."""
    runs, key = study(SCENARIO, tmp_path), RunKey("pair", 1, "simulation")
    finished(runs, runtime="simulation", code="an older one")
    assert runs.missing(key) == ["asgd", "adacomp"]
    finished(runs, runtime="simulation")
    assert runs.missing(key) == []


def test_the_simulation_ranks_as_itself(tmp_path: Path) -> None:
    """Real runs, found again and not made twice: no error at all, and the slower method is last."""
    runs = study(TINY, tmp_path, runtime="simulation")
    runs.make(without_report, None, None)
    made = sorted(path.name for path in (runs.root / "tiny").iterdir())
    found = runs.evaluate()
    runs.make(without_report, None, None)

    assert sorted(path.name for path in (runs.root / "tiny").iterdir()) == made
    assert {name: error.largest for name, error in found.errors.items()} == dict.fromkeys(found.errors, 0.0)
    assert (found.taus["time"].tau, found.taus["time"].pairs, found.wrong) == (1, 1, ())
    assert {place.method: place.measures["time"].live for place in found.places}["slower"] > 0.3


def test_runs_may_be_deleted_once_they_are_kept(tmp_path: Path) -> None:
    """A line for each trial says the same as the run; it counts for the file that it was made from alone."""
    runs = study(TINY, tmp_path, runtime="simulation")
    runs.make(without_report, None, None)
    found, key = runs.evaluate(), RunKey("tiny", 1, "simulation")
    shutil.rmtree(runs.root)

    again = study(TINY, tmp_path, runtime="simulation")
    assert again.missing(key) == []
    assert again.evaluate() == found
    assert study(TINY, tmp_path, runtime="simulation", started="2100-01-01").missing(key) == ["asgd", "slower"]
    assert study(TINY | {"question": "Another one?"}, tmp_path).missing(key) == ["asgd", "slower"]
    runs.kept.path.write_text("{}")
    with pytest.raises(EdgebedError, match=r"trials\.jsonl:1: not a trial of a ranking study"):
        study(TINY, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--margin", "0.05"), "--margin: "),
        (("--margin", "0%"), "--margin: 0 is no share of the time"),
        (("--runtime", "simulation"), "simulation is not live"),
        (("--no-run",), "--no-run: no such study was begun"),
    ],
)
def test_mistakes_are_told_before_anything_runs(validate: Command, words: tuple[str, ...], said: str) -> None:
    """With exit code 2 and without a traceback."""
    code, _, err = validate("ranks", *words)
    assert (code, "Traceback" in err) == (2, False), err
    assert said in err


def test_the_command_writes_the_page_and_leaves_with_the_verdict(
    tmp_path: Path, validate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page, result and statement lie in the study's folder; a tau of so few pairs is no equivalence, so it leaves 1."""

    def make(runs: RankingRuns, *_) -> None:
        for key in (*runs.keys("simulation"), *runs.keys("process")):
            assert key.scenario == "ranks-1-000"
            finished_run_of(runs, key)

    def finished_run_of(runs: RankingRuns, key: RunKey) -> None:
        options = {"runtime": key.runtime, "emulation": "auto"}
        with runs.files[key.scenario].open() as stream:
            scenario = YAML(typ="safe").load(stream)
        run = finished_run(
            runs.root, dict.fromkeys(scenario["variants"], RISING), seed=key.seed, scenario=scenario,
            runtime=key.runtime, options=options, code=fingerprint(),
        )  # fmt: skip
        write_atomically(run.folder.summary, run.summary_json())

    monkeypatch.setattr(RankingRuns, "check", lambda _: None)
    monkeypatch.setattr(RankingRuns, "make", make)
    monkeypatch.setattr("validation.ranking.kept_trials._why_not", lambda *_, **__: "")
    code, out, err = validate("ranks", "--scenarios", "1", "--seeds", "2", "--json")
    place = tmp_path / "runs" / "rankings"
    found = json.loads(out)

    assert code == 1, err
    assert found["ranking"]["verdict"] == "too few pairs to tell"
    assert found["page"] == str(place / "ranks-1-process.html")
    assert {path.name for path in (place / "ranks-1-process").iterdir()} >= {
        "stated.json",
        "ranking.json",
        "costs.json",
    }
    code, out, err = validate("ranks", "--scenarios", "1", "--seeds", "2", "--no-run")
    assert code == 1, err
    assert "too few pairs to tell: tau unknown in time" in " ".join(out.split())
