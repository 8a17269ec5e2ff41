"""The command line: what each command prints, where, and with which exit code."""

import itertools
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import msgspec
import pytest
from command_line import command_line
from evaluated import MEASURES, evaluation
from finished_runs import RISING, finished_run
from node_plans import METHOD, plan_of_role

from edgebed.cli import main as cli
from edgebed.core import records
from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.plan import TrainingPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder, write_atomically
from edgebed.running.results import Run


def make_run(root, outcome="completed", accuracy=0.97):
    """A run of one trial with two updates, and an expectation of 0.9."""
    method = msgspec.structs.replace(METHOD, name="asgd")
    server, evaluator, worker = (
        plan_of_role(node=node, role=role, device_class=node.partition("-")[0], method=method)
        for node, role in (("server", "server"), ("evaluator", "evaluator"), ("edge-0", "worker"))
    )
    plan = TrainingPlan(
        scenario="tiny", trial="asgd", question="Does it run?", seed=1, nodes=(server, evaluator, worker),
        measures=MEASURES, expectations=(("final_accuracy", ">=", 0.9),),
    )  # fmt: skip
    folder = RunFolder.create(root, "tiny")
    folder.write_manifest(seed=1, runtime="simulation", command=["edgebed", "run", "tiny.yaml"], trials=["asgd"])
    trial = folder.trial("asgd")
    trial.make(plan)
    trial.log("edge-0").write_text("hello\n")
    with JournalWriter(trial.journal) as journal:
        for version in (1, 2):
            journal.write(version, "server", records.Update(
                worker="edge-0", incarnation=0, step=version - 1, version=version, base=version - 1, staleness=0,
                entries=10, bits=640, bytes=100, loss=1.0,
            ))  # fmt: skip
            journal.write(version, "evaluator", evaluation(version, accuracy, 0.1, final=version == 2))
        journal.write(3.0, "controller", records.Ended(outcome=outcome, reason="updates"))
    run = Run(folder)
    write_atomically(folder.summary, run.summary_json())
    return run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs that the environment points to."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path / "runs"


@pytest.fixture
def edgebed(monkeypatch, capsys):
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    return command_line(monkeypatch, capsys)


@pytest.fixture
def running(monkeypatch):
    """Stands in for `edgebed.reports.reported`: remembers what it was asked and does what `outcome` says."""
    stand_in = types.ModuleType("edgebed.reports.reported")
    stand_in.asked, stand_in.outcome = {}, None

    def run(path, **options):
        stand_in.asked = {"path": path, **options}
        return stand_in.outcome()

    stand_in.run = run
    monkeypatch.setitem(sys.modules, "edgebed.reports.reported", stand_in)
    return stand_in


def raising(error):
    """A function that raises `error`."""

    def outcome():
        raise error

    return outcome


@pytest.mark.parametrize(
    ("outcome", "accuracy", "code"),
    [("completed", 0.97, 0), ("completed", 0.5, 1), ("failed", 0.97, 3), ("interrupted", 0.97, 130)],
)
def test_run_exits_with_the_result(edgebed, running, runs, outcome, accuracy, code):
    """Met 0, not met 1, failed 3, interrupted 130; the table is printed all the same."""
    running.outcome = lambda: make_run(runs, outcome, accuracy)
    left, out, _ = edgebed("run", "tiny.yaml")

    assert left == code
    assert "asgd" in out
    assert "updates/s" in out


def test_run_hands_its_options_on(edgebed, running, runs):
    """Each option arrives under its own name."""
    running.outcome = lambda: make_run(runs)
    words = (
        "--runtime simulation --emulation model --set a.b=1 --set c=2 --variant x --variant y --trace --processes 2 "
        "--port 9100 --runs-dir here --force --json"
    )
    _, out, err = edgebed("run", "tiny.yaml", "--json", *words.split(), "--note", "as in table 2")
    asked = {name: str(value) for name, value in running.asked.items() if name != "progress"}

    assert asked == {
        "path": "tiny.yaml", "runtime": "simulation", "set": "['a.b=1', 'c=2']", "variants": "['x', 'y']",
        "trace": "True", "processes": "2", "port": "9100", "runs_dir": "here", "force": "True", "emulation": "model",
        "hosts": "None", "note": "as in table 2",
    }  # fmt: skip
    assert json.loads(out)["exit_code"] == 0
    assert err == ""


def test_every_problem_of_a_user_is_a_line_on_standard_error(edgebed, running):
    """All problems, no traceback, exit code 2."""
    running.outcome = raising(ScenarioError("a.yaml:1:2: x: wrong", "a.yaml:3:4: y: wrong too"))

    assert edgebed("run", "a.yaml") == (2, "", "error: a.yaml:1:2: x: wrong\nerror: a.yaml:3:4: y: wrong too\n")


def test_the_machines_failures_exit_with_3(edgebed, running):
    """No space left is neither the user's mistake nor a bug."""
    running.outcome = raising(InfrastructureError("runs/x: No space left on device"))

    assert edgebed("run", "a.yaml") == (3, "", "error: runs/x: No space left on device\n")


def test_a_bug_shows_its_traceback(edgebed, running):
    """Exit code 3, so that it cannot be taken for an expectation not met."""
    running.outcome = raising(ZeroDivisionError("a bug"))
    code, _, err = edgebed("run", "a.yaml")

    assert code == 3
    assert "Traceback" in err
    assert "ZeroDivisionError: a bug" in err


def test_ctrl_c_exits_with_130(edgebed, running):
    """As a shell does; and never without a word."""
    running.outcome = raising(KeyboardInterrupt())

    assert edgebed("run", "a.yaml") == (130, "", "interrupted\n")


@pytest.mark.parametrize("words", ["run", "run a.yaml --runtime podman", "walk", "run a.yaml --processes 0"])
def test_a_wrong_command_line_exits_with_2(edgebed, words):
    """Missing arguments, unknown commands and values out of range are the user's mistake."""
    code, out, err = edgebed(*words.split())

    assert (code, out) == (2, "")
    assert "Usage" in err


def test_show_prints_a_table_or_json(edgebed, runs):
    """The same numbers for people and for programs."""
    make_run(runs)
    code, out, _ = edgebed("show", "tiny")
    json_code, json_out, _ = edgebed("show", "tiny/1", "--json")

    assert (code, json_code) == (0, 0)
    assert "97.00 %" in out
    assert "The expectation is met." in out
    assert json.loads(json_out)["trials"][0]["final"]["accuracy"] == 0.97


def test_an_unknown_run_is_the_users_mistake(edgebed, runs):
    """The runs there are, and exit code 2."""
    make_run(runs)
    code, _, err = edgebed("show", "big")

    assert code == 2
    assert "error: no run 'big'; there are tiny/0001" in err


def test_the_environment_says_which_runtime_is_meant(edgebed, running, runs, monkeypatch):
    """Unless the option does."""
    monkeypatch.setenv("EDGEBED_RUNTIME", "simulation")
    running.outcome = lambda: make_run(runs)
    edgebed("run", "tiny.yaml")
    assert running.asked["runtime"] == "simulation"
    edgebed("run", "tiny.yaml", "--runtime", "docker")
    assert running.asked["runtime"] == "docker"


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_runtime_of_the_environment_is_named_by_its_variable(edgebed, monkeypatch, command):
    """It stands in no command."""
    monkeypatch.setenv("EDGEBED_RUNTIME", "simulated")
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = edgebed(command, "quickstart")

    assert (code, out) == (2, "")
    assert "'--runtime' (env var: 'EDGEBED_RUNTIME')" in err
    assert ": 'simulated' is not one of 'process', 'simulation', 'docker'" in err


@pytest.mark.parametrize(("words", "meant"), [("show tinyy", "tiny"), ("show tinny/1", "tiny"), ("shwo", "show")])
def test_a_command_or_run_that_is_nearly_right_is_guessed(edgebed, runs, words, meant):
    """A run by its scenario."""
    make_run(runs)
    code, _, err = edgebed(*words.split())

    assert code == 2
    assert f"did you mean '{meant}'?" in err.lower()


def test_ls_lists_runs_with_their_badges(edgebed, runs):
    """A run without a summary is unfinished; no runs at all is said on standard error."""
    assert edgebed("ls")[:2] == (0, "")
    make_run(runs)
    make_run(runs).folder.summary.unlink()
    _, out, _ = edgebed("ls")
    rows = json.loads(edgebed("ls", "--json")[1])

    assert "tiny/0002" in out
    assert [(row["run"], row["result"], row["conditions"], row["badge"]) for row in rows] == [
        ("tiny/0001", "met", "", "met"),
        ("tiny/0002", "unfinished", "", "unfinished"),
    ]


@pytest.mark.usefixtures("undrawn")
def test_report_is_made_anew(edgebed, runs, tmp_path):
    """Into the run's folder or where -o says; its path is printed."""
    run = make_run(runs)

    assert edgebed("report", "tiny") == (0, f"{run.folder.report}\n", "")
    assert edgebed("report", "tiny", "-o", tmp_path / "r.html") == (0, f"{tmp_path / 'r.html'}\n", "")
    assert (tmp_path / "r.html").read_text() == run.folder.report.read_text()


def test_logs_are_printed_with_their_nodes(edgebed, runs):
    """One node in one trial needs no prefix."""
    make_run(runs)

    assert edgebed("logs", "tiny")[1] == "asgd/edge-0: hello\n"
    assert edgebed("logs", "tiny", "edge-0", "--trial", "asgd")[1] == "hello\n"
    assert edgebed("logs", "tiny", "edge-7")[0] == 2


def test_the_version_is_printed(edgebed):
    """Program and number."""
    assert edgebed("--version") == (0, "edgebed 0.1.0\n", "")


def test_a_reader_that_leaves_ends_the_output_in_silence(runs):
    """`edgebed logs | head -1` shows no BrokenPipeError and does not fail."""
    run = make_run(runs)
    run.folder.trial("asgd").log("edge-0").write_text("line\n" * 200_000)
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", "from edgebed.cli.main import main; main()", "logs", "tiny"],
        stdout=write, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write)
    first = os.read(read, 10)
    os.close(read)
    _, err = process.communicate(timeout=60)

    assert (first, err, process.returncode) == (b"asgd/edge-", b"", 0)


def test_a_reader_that_leaves_does_not_change_the_exit_code(runs):
    """A table that nobody reads is no failure."""
    make_run(runs)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from edgebed.cli.main import main; main()", "show", "tiny"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)

    assert (done.returncode, done.stderr) == (0, b"")


def test_the_command_line_starts_without_what_only_some_commands_need():
    """Help is quick: no torch, numpy or matplotlib before a command asks for them."""
    code = "import sys, edgebed.cli.main; print({'torch', 'numpy', 'matplotlib', 'msgspec'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "set()"


SCENARIO = """
name: tiny
question: Does it run?
seed: 3
task: {data: digits, model: small, batch_size: 16}
method: asgd
fleet: {edge: {count: 2, cpus: 0.5, memory: 256MiB}}
stop: {updates: 100}
"""


@pytest.fixture
def scenario(tmp_path):
    """A scenario file that is fine."""
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


def test_validate_tells_the_good_from_the_bad(edgebed, scenario, tmp_path):
    """Every file is checked, every problem said; 2 if any has one."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(SCENARIO.replace("count: 2", "count: -2"))

    assert edgebed("validate", scenario) == (0, f"{scenario}: valid\n", "")
    code, out, err = edgebed("validate", scenario, bad)
    assert (code, out) == (2, f"{scenario}: valid\n")
    assert err.startswith(f"error: {bad}:")
    rows = json.loads(edgebed("validate", scenario, bad, "--json")[1])
    assert [row["valid"] for row in rows] == [True, False]
    assert edgebed("validate", bad, "--set", "fleet.edge.count=3")[0] == 0


def test_plan_shows_every_node_and_the_machine(edgebed, scenario):
    """Nodes, caps and options before anything runs; the same as JSON."""
    code, out, _ = edgebed("plan", scenario, "--set", "fleet.edge.count=3")
    (description,) = json.loads(edgebed("plan", scenario, "--runtime", "simulation", "--json")[1])

    assert code == 0
    assert {"server", "evaluator", "edge-0", "edge-2"} <= set(out.split())
    assert [node["node"] for node in description["nodes"]] == ["server", "evaluator", "edge-0", "edge-1"]


@pytest.mark.parametrize(("name", "begins"), [("plan.html", "<!doctype html>"), ("plan.md", "# Plan of ")])
def test_a_plan_is_a_page_like_others(edgebed, scenario, tmp_path, name, begins):
    """In HTML or in Markdown, by the name of its file, with all that a terminal shows."""
    page = tmp_path / name
    code, out, _ = edgebed("plan", scenario, "--output", page)
    text = page.read_text()

    assert code == 0
    assert text.lower().startswith(begins.lower())
    *shown, where = out.splitlines()
    assert where == f"page: {page}"
    assert all(word in text for word in re.findall(r"[\w-]+", "\n".join(shown)))


def test_a_place_where_no_page_can_be_is_refused_before_anything_is_planned(edgebed, scenario, tmp_path):
    """As for every page."""
    code, out, err = edgebed("plan", scenario, "--output", tmp_path)

    assert (code, out) == (2, "")
    assert err == f"error: --output: {tmp_path} is a folder; give a file, e.g. {tmp_path / 'plan.html'}\n"


def test_a_memory_cap_that_a_container_cannot_live_under_is_refused(edgebed, scenario):
    """By `plan` and by `run`, before anything starts, where caps are held; with --force it is a warning."""
    words = (scenario, "--set", "fleet.edge.memory=100MiB")
    refused = "error: --set fleet.edge.memory=100MiB: 100MiB is below the 165MiB that a worker of this task needs"

    for command in ("plan", "run"):
        code, out, err = edgebed(command, *words, "--runtime", "docker")
        assert (code, out) == (2, "")
        assert err.startswith(refused)
        assert err.endswith("raise it, or run with --force\n")
    code, out, err = edgebed("plan", *words, "--runtime", "docker", "--force")
    assert (code, err) == (0, "")
    assert "Warning: memory cap of edge: 100MiB is below the 165MiB" in out


@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_a_memory_cap_that_is_not_held_is_not_refused(edgebed, scenario, runtime):
    """Such a runtime has no use for it, and says so."""
    words = ("--runtime", runtime, "--emulation", "model", "--set", "fleet.edge.memory=1MiB")
    code, out, _ = edgebed("plan", scenario, *words)

    assert code == 0
    assert "Warning: memory caps" in out


def test_down_says_what_it_removes(edgebed):
    """Its help names what is touched, and nothing else is."""
    code, out, _ = edgebed("down", "--help")

    assert code == 0
    assert "controllers that are gone have left: containers, networks and cgroups." in " ".join(out.split())
    assert "--logs" in out


@pytest.fixture
def no_engine(monkeypatch, tmp_path):
    """A machine without a container engine, and without leftovers in its cgroups."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("edgebed.runtimes.containers.engine.SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr("edgebed.emulation.cgroups.remove_leftovers", lambda _: 0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_down_does_without_containers_where_there_is_no_engine(edgebed, no_engine, tmp_path):
    """It says so in one line."""
    code, out, err = edgebed("down")

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"containers were not looked for: there is no {tmp_path / 'docker.sock'}, and DOCKER_HOST is not set",
        "nothing to remove",
    ]


def test_down_fails_where_an_engine_does_not_answer(edgebed, no_engine, monkeypatch):
    """Somebody has said that it is there: what it holds is left."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    code, _, err = edgebed("down")

    assert code == 3
    assert "no container engine answers" in err


def test_the_schema_is_json(edgebed):
    """What an editor reads to help with a scenario."""
    code, out, _ = edgebed("schema")

    assert code == 0
    assert {"name", "fleet", "method"} <= json.loads(out)["properties"].keys()


def run_command(*words, environment=None, **streams):
    """A command line in a process of its own."""
    command = [sys.executable, "-c", "from edgebed.cli.main import main; main()", *words]
    return subprocess.run(command, env=os.environ | (environment or {}), timeout=60, check=False, **streams)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("show", "tiny"), ("show", "tiny", "--json"), ("ls",), ("--help",)])
def test_a_full_disk_behind_standard_output_is_said_without_a_traceback(runs, words):
    """One line on standard error and the machine's exit code."""
    make_run(runs)
    with Path("/dev/full").open("w") as full:
        done = run_command(*words, stdout=full, stderr=subprocess.PIPE)

    assert done.returncode == 3
    assert re.fullmatch(rb"error: .*No space left on device\n", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("ls", "--runs-dir"), ("report", "tiny", "--output")], ids=" ".join)
def test_a_name_that_no_file_can_have_is_the_users_mistake(runs, words):
    """One line that begins with it, whichever option it was given to."""
    make_run(runs)
    done = run_command(*words, 300 * "x", stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    assert done.returncode == 2
    assert done.stderr.decode() == f"error: {60 * 'x'}…: File name too long; give a shorter one\n"


def test_closed_streams_do_not_matter(runs):
    """The text goes nowhere, the exit code stays."""
    make_run(runs)
    command = f"{sys.executable} -c 'from edgebed.cli.main import main; main()'"
    codes = [
        subprocess.run(["sh", "-c", f"{command} {words}"], timeout=60, check=False).returncode
        for words in ("show tiny >&- 2>&-", "show nosuch >&- 2>&-")
    ]

    assert codes == [0, 2]


def test_a_stream_of_ascii_gets_plainer_characters(runs):
    """Marks, lines and dashes have a stand-in each."""
    make_run(runs)
    done = run_command("show", "tiny", environment={"PYTHONIOENCODING": "ascii"}, capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"+ asgd: final_accuracy 97.00 %, expected >= 90.00 %" in done.stdout
    assert b"-----" in done.stdout
    assert b"?" not in done.stdout


def test_a_report_goes_only_where_it_can(edgebed, runs, tmp_path):
    """A folder that is not there, or one in the place of the file, is the user's mistake."""
    make_run(runs)
    code, _, err = edgebed("report", "tiny", "-o", tmp_path / "gone" / "r.html")
    assert (code, "there is no folder" in err, "--runs-dir" in err) == (2, True, False)
    code, _, err = edgebed("report", "tiny", "-o", tmp_path)
    assert (code, f"give a file, e.g. {tmp_path}/report.html" in err) == (2, True)
    assert edgebed("report", "tiny", "-o", "/dev/null")[0] == 2


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ["report --output", "compare --output", "compare --csv", "replay --output"],
)
def test_what_cannot_be_written_names_the_option_that_chose_it(edgebed, runs, tmp_path, words):
    """In one line; here the name leaves no room for that of the file that is written beside."""
    finished_run(runs, {"asgd": RISING, "adacomp": RISING}, seed=1, runtime="simulation")
    place = tmp_path / ("x" * 250)
    command, option = words.split()

    assert edgebed(command, "pair", option, place) == (
        3,
        "",
        f"error: {place}: cannot be written: File name too long; choose another folder with {option}\n",
    )


def test_samples_replace_a_file_in_one_step(edgebed, runs, tmp_path):
    """What a reader has open stays whole, a link stays a link, and nothing is left beside."""
    make_run(runs)
    place, link = tmp_path / "kept" / "run.om", tmp_path / "link.om"
    place.parent.mkdir()
    place.write_text("before")
    link.symlink_to(place)
    with place.open() as reader:
        assert edgebed("replay", "tiny", "-o", link)[0] == 0
        assert reader.read() == "before"
    assert link.is_symlink()
    assert place.read_text().endswith("# EOF\n")
    assert list(place.parent.iterdir()) == [place]


def test_a_name_that_is_too_long_for_a_file_is_no_run(edgebed, runs):
    """Like any other that is not there."""
    make_run(runs)
    for words in (("report", 300 * "x"), ("show", f"tiny/{300 * 'x'}")):
        code, out, err = edgebed(*words)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: no run '{words[1]}'; there are tiny/0001.")


def test_listing_a_file_is_the_users_mistake(edgebed, tmp_path):
    """It exists, and has no runs."""
    (tmp_path / "file").write_text("")

    assert edgebed("ls", "--runs-dir", tmp_path / "file") == (
        2,
        "",
        f"error: --runs-dir: {tmp_path / 'file'} is a file; give a folder\n",
    )


def test_listing_a_folder_that_is_not_there_is_the_users_mistake(edgebed, tmp_path):
    """No runs and no folder are different things."""
    code, out, err = edgebed("ls", "--runs-dir", tmp_path / "nope")

    assert (code, out) == (2, "")
    assert f"the folder {tmp_path / 'nope'} does not exist" in err


def test_ls_has_one_line_a_run_and_a_short_date(edgebed, runs, monkeypatch):
    """At 80 columns too."""
    monkeypatch.setenv("COLUMNS", "80")
    make_run(runs)
    make_run(runs, accuracy=0.5)
    make_run(runs, outcome="failed")
    lines = edgebed("ls")[1].splitlines()

    assert [line.split()[-1] for line in lines[2:]] == ["met", "met", "result"]
    assert all(re.search(r"^tiny/000\d +\d{4}-\d\d-\d\d \d\d:\d\d +simulation +asgd ", line) for line in lines[2:])


def test_help_shows_every_command_in_its_group(edgebed, monkeypatch):
    """Once each, in the order of their use."""
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = edgebed("--help")
    titles = [name for line in out.splitlines() if (name := re.sub("[╭╮─]", "", line).strip()) in cli.GROUPS]
    shown = re.findall(r"^│ ([a-z]+) ", out, re.MULTILINE)

    assert code == 0
    assert titles == list(cli.GROUPS)
    assert sorted(shown) == sorted(
        ["hosts", "link", *(each.__name__ for each in itertools.chain(*cli.GROUPS.values()))]
    )
