"""`edgebed compare`: what it prints, writes and refuses; on real runs of the simulation and on chosen accuracies."""

import csv
import functools
import io
import json
import re
import subprocess
import sys

import pytest
from command_line import command_line
from finished_runs import RISING, finished_run
from quick_runs import run as run_quickly

pytestmark = pytest.mark.slow

SEEDS = (1, 2, 3)
SCENARIO = """
name: small
question: Does AdaComp save bytes?
task: { data: digits, model: small, batch_size: 10 }
fleet: { edge: { count: 3, waiting: { exponential: 20ms } } }
evaluation: { every: 50 updates }
stop: { updates: 300 }
variants:
  asgd: { method: asgd }
  adacomp: { method: { preset: adacomp, compression: { fraction: 0.1 } } }
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The folder of three runs of the simulation, a seed each."""
    root = tmp_path_factory.mktemp("simulated")
    scenario = root / "small.yaml"
    scenario.write_text(SCENARIO)
    for seed in SEEDS:
        run_quickly(scenario, runtime="simulation", set=[f"seed={seed}"], processes=1, runs_dir=root / "runs")
    return root / "runs"


@pytest.fixture
def compare(monkeypatch, capsys):
    """Calls `edgebed compare` in this process; gives (exit code, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    return functools.partial(command_line(monkeypatch, capsys), "compare")


def test_three_seeds_of_two_methods(simulated, compare):
    """Tables, what changed, the page; AdaComp's pushes are a clear ninth, and each arm has its interval."""
    code, out, err = compare("small/1", "small/2", "small/3", "--runs-dir", simulated)
    assert (code, err) == (0, "")
    assert "Whole trials against asgd" in out
    assert "method.aggregation.staleness: whole-update → per-parameter" in out
    assert "95 % Student-t interval over 3 seeds" in out
    assert out.rstrip().endswith(f"page: {simulated / 'comparison.html'}")
    assert "±" in out
    assert "1 seed" not in out
    to = next(line for line in out.splitlines() if line.startswith("To ") and "against" in line)
    head = out.partition(to)[2].splitlines()[1]
    assert [head.count(f"{way}, ×") for way in ("up", "down", "total")] == [1, 1, 1]


def test_the_page_needs_nothing_else(simulated, compare, tmp_path):
    """It has the tables, five charts with a band for each arm, each trial and the command to make it again."""
    place = tmp_path / "page.html"
    assert compare("small/1", "small/2", "small/3", "--to", "50%", "-o", place, "--runs-dir", simulated)[0] == 0
    page = place.read_text()
    assert page.count("<svg") == 5
    assert page.index("Accuracy against bytes up and down") < page.index("Accuracy against bytes up<")
    assert "Does AdaComp save bytes?" in page
    assert "edgebed compare small/0001 small/0002 small/0003 --window 3 --to 50%" in page
    assert all(f'<td class="short">small/{seed:04}' in page for seed in SEEDS)
    assert not any(word in page for word in ("<script ", "src=", "<link", "@import"))
    assert page.count("<script") == 1


def test_the_page_begins_with_the_answer(simulated, compare, tmp_path):
    """What each arm took in the mean of its seeds, the cheaper first, and who is first; then charts, then tables."""
    place = tmp_path / "page.html"
    assert compare("small/1", "small/2", "--to", "50%", "-o", place, "--runs-dir", simulated)[0] == 0
    page = place.read_text()

    to = "To 50 % accuracy in the mean of 3 evaluations"
    answer = re.search(rf"<strong>{to}: (\w+) (.*) up, .* in all, .* s; (\w+) .*</strong>", page)
    assert (answer[1], answer[3]) == ("adacomp", "asgd")
    assert re.search(r"First by time: \w+ \(\w+ takes .*\); by bytes: adacomp \(asgd takes ", page)
    row = re.search(rf"<h2>{to}</h2>.*?>adacomp</th>(.*?)</tr>", page, re.DOTALL)[1]
    assert answer[2] in row
    order = ("<strong>To 50 % accuracy", "First by time", "<svg", "<table><thead><tr><th scope=col>arm")
    assert sorted(map(page.index, order)) == list(map(page.index, order))


def test_json_alone(simulated, compare):
    """With every seed's values, and no page unless one is asked for."""
    (simulated / "comparison.html").unlink(missing_ok=True)
    code, out, _ = compare("small/1", "small/2", "--json", "--runs-dir", simulated)
    found = json.loads(out)
    assert (code, found["baseline"], list(found["arms"])) == (0, "asgd", ["asgd", "adacomp"])
    ratio = found["arms"]["adacomp"]["measures"]["push_bytes_mean"]["against"]
    assert 0.05 < ratio["low"] <= ratio["high"] < 0.3
    assert list(found["arms"]["asgd"]["measures"]["best_accuracy"]["values"]) == ["1", "2"]
    assert not (simulated / "comparison.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_one_run_with_one_seed(simulated, compare):
    """Its variants are compared without intervals, and that is said."""
    code, out, _ = compare("small", "--runs-dir", simulated)
    assert (code, "1 seed in every arm: there is no interval" in out, "±" in out) == (0, True, False)


@pytest.mark.usefixtures("undrawn")
def test_a_spreadsheet(tmp_path, compare):
    """One line a trial; what was never reached is empty; `-` is standard output alone."""
    finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, 0.5, 0.6)})
    place = tmp_path / "trials.csv"
    assert compare("pair", "--to", "0.95", "--window", 1, "--csv", place, "--runs-dir", tmp_path)[0] == 0
    code, out, _ = compare("pair", "--to", "95%", "--window", 1, "--csv", "-", "--runs-dir", tmp_path)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, out) == (0, place.read_text())
    assert [(row["arm"], row["seed"], row["updates_to"], row["to"]) for row in rows] == [
        ("asgd", "1", "200", "0.95"),
        ("adacomp", "1", "", "0.95"),
    ]


@pytest.mark.usefixtures("undrawn")
def test_what_is_never_reached_says_so(tmp_path, compare):
    """In no seed, or in some of them."""
    for seed, best in ((1, 0.96), (2, 0.9)):
        finished_run(tmp_path, {"asgd": RISING, "adacomp": (0.1, best)}, seed=seed)
    out = compare("pair/1", "pair/2", "--to", "97%", "--runs-dir", tmp_path)[1]
    assert "never" in out
    out = compare("pair/1", "pair/2", "--to", "95%", "--window", 1, "--runs-dir", tmp_path)[1]
    assert "in 1 of 2 seeds" in out


@pytest.mark.usefixtures("undrawn")
def test_another_task_is_refused(tmp_path, compare):
    """Its numbers say nothing of methods; whoever insists reads first what differs, on the page as well."""
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, sets=["task.model=mlp"])
    code, out, err = compare("pair/1", "pair/2", "--runs-dir", tmp_path)
    assert (code, out) == (2, "")
    assert "task.model: small → mlp" in err
    assert "--force" in err

    code, out, _ = compare("pair/1", "pair/2", "--force", "--runs-dir", tmp_path)
    assert code == 0
    assert out.splitlines()[0].startswith("! asgd (")
    assert "does not train the task of asgd (" in out.splitlines()[0]
    page = (tmp_path / "comparison.html").read_text()
    assert "edgebed compare pair/0001 pair/0002 --window 3 --force" in page
    assert page.index("does not train the task") < page.index("Whole trials")


@pytest.mark.usefixtures("undrawn")
def test_another_split_is_the_first_thing_said(tmp_path, compare):
    """It is compared, since that may be the question."""
    finished_run(tmp_path, {"asgd": RISING})
    finished_run(tmp_path, {"asgd": RISING}, sets=["task.split={dirichlet: 0.1}"])
    code, out, _ = compare("pair/1", "pair/2", "--runs-dir", tmp_path)

    assert code == 0
    assert "task.split: " in out.splitlines()[0]
    assert "0.1" in out.splitlines()[0]


@pytest.mark.usefixtures("undrawn")
def test_what_seeds_would_find_is_said(tmp_path, compare):
    """In eight of ten studies, and how many differences chance alone would make; of one seed nothing."""
    for seed, best in ((1, 0.96), (2, 0.9), (3, 0.93)):
        finished_run(tmp_path, {"asgd": (0.1, 0.9), "adacomp": (0.1, best)}, seed=seed)
    three = compare("pair/1", "pair/2", "pair/3", "--window", 1, "--runs-dir", tmp_path)[1]
    assert (
        "Eight of ten studies with as many seeds would distinguish adacomp from asgd if they differed by 9.79 points "
        "in best accuracy" in three
    )
    assert re.search(
        r"\d+ comparisons with an interval: if nothing differed, chance alone would still find some 0", three
    )
    one = compare("pair/1", "--runs-dir", tmp_path)[1]
    assert "Eight of ten" not in one
    assert "chance alone" not in one


@pytest.mark.usefixtures("undrawn")
def test_what_has_not_completed_is_flagged(tmp_path, compare):
    """It is left out by name; alone it is refused."""
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    finished_run(tmp_path, {"asgd": RISING}, seed=2, outcome="interrupted")
    code, out, _ = compare("pair/1", "pair/2", "--runs-dir", tmp_path)
    assert (code, "left out: pair/0002: asgd is interrupted after 300 updates" in out) == (0, True)
    code, out, err = compare("pair/2", "--runs-dir", tmp_path)
    assert (code, out) == (2, "")
    assert "error: nothing to compare: no trial has completed" in err


@pytest.mark.usefixtures("undrawn")
def test_a_narrow_terminal_keeps_what_matters_most(tmp_path, compare, monkeypatch):
    """No line is wider, and the best accuracy and the bytes up and down stay."""
    monkeypatch.setenv("COLUMNS", "60")
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    out = compare("pair", "--runs-dir", tmp_path)[1]
    tables = out[out.index("Whole trials") :].partition("Best accuracy")[0].splitlines()
    assert max(map(len, tables)) <= 60
    assert sum("best accuracy" in line and "total" in line for line in tables) == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("nosuch",), "no run 'nosuch'; there are pair/0001"),
        (("pair", "--to", "hot"), "--to: 'hot' is no value of a measure"),
        (("pair", "--to", "97"), "--to: 97 is not above 0 and at most 1; give the accuracy"),
        (("pair", "--to", "0%"), "--to: 0 is not above 0 and at most 1"),
        (("pair", "--to", "nan"), "--to: nan is not above 0"),
        (("pair", "--window", "0"), "--window: 0 is below 1"),
        (("pair", "--baseline", "sgd"), "--baseline: no arm 'sgd'"),
        (("pair", "--json", "--csv", "-"), "--json, --csv -: standard output is for one of them"),
        (("pair", "--csv", "nowhere/x.csv"), "--csv: there is no folder nowhere"),
        (("pair", "-o", "."), "--output: . is a folder; give a file, e.g. comparison.html"),
    ],
)
def test_mistakes(tmp_path, compare, words, problem):
    """One line that says where, what and what is allowed; nothing is written."""
    finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING})
    code, out, err = compare(*words, "--runs-dir", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert problem in err
    assert not list(tmp_path.glob("*.html"))


def test_no_run_is_a_mistake(compare):
    """The usage says so."""
    assert compare()[0] == 2


def test_names_are_escaped_on_the_page(tmp_path, compare):
    """Whatever a question holds, it is text."""
    from finished_runs import SCENARIO as PAIR

    finished_run(tmp_path, {"asgd": RISING}, scenario=PAIR | {"question": "<script>alert(1)</script>"})
    assert compare("pair", "--runs-dir", tmp_path)[0] == 0
    page = (tmp_path / "comparison.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_help_imports_nothing_heavy():
    """`edgebed compare --help` is quick."""
    program = (
        "import sys\nfrom edgebed.cli import main as cli\nsys.argv = ['edgebed', 'compare', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted({'scipy', 'matplotlib', 'numpy', 'torch'} & set(sys.modules)), 'end', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "end"
