"""Mistakes on a terminal: the line of the file with a mark under what is meant, and the same for other programs."""

import pytest

from edgebed.cli.problems import excerpt
from edgebed.core.console import wrapped
from edgebed.core.errors import Choice, Location, Place, ScenarioError
from edgebed.planning.checking import check

SCENARIO = """\
name: tiny
task: { data: digits, model: small, batch_size: 16 }
method: asgd
fleet: { edge: { count: 2 } }
stop: { updates: 100 }
"""


@pytest.fixture
def marked(tmp_path):
    """The excerpt of a text, marked at a line and a column."""

    def call(text, line, column, width=80):
        path = tmp_path / "s.yaml"
        path.write_text(text)
        return excerpt(Place(str(path), line, column), width).split("\n")

    return call


@pytest.mark.parametrize(
    ("line", "column", "mark"),
    [
        ("task: { batchsize: 10 }", 9, "        ^^^^^^^^^"),
        ("rate: 10 Mbit/s", 7, "      ^^"),
        ('model: "mynts:lenet"', 8, "       ^^^^^^^^^^^^^"),
        ("stop: { updates:200 }", 9, "        ^^^^^^^^^^^"),
        ("cuts: [9, 3]", 7, "      ^"),
        ("テレフォン: 4", 1, "^^^^^^^^^^"),
        ("テレフォン: 4", 8, "            ^"),
        ("\tcount: x", 9, "\t       ^"),
    ],
)
def test_what_is_meant_is_marked_whatever_stands_before_it(marked, line, column, mark):
    """Wide characters take two columns; a tab stays one, so that a terminal moves the mark as far as the line."""
    shown, below = marked(line, 1, column)

    assert shown == f"    1 | {line}"
    assert below == f"      | {mark}"


def test_a_long_line_is_cut_around_what_is_meant(marked):
    """Both lines fit, and the mark is under the word."""
    text = "{ " + "a: 1, " * 50 + "wrong: 2, " + "b: 3, " * 50 + "}"

    shown, below = marked(text, 1, text.index("wrong") + 1, width=60)

    assert max(len(shown), len(below)) <= 60
    assert shown[below.index("^") : below.rindex("^") + 1] == "wrong"


@pytest.mark.parametrize(("line", "column"), [(0, 0), (9, 1), (1, 99), (2, 1)])
def test_where_no_line_can_be_shown_nothing_is(marked, line, column):
    """No line, one that the file has not, a column behind its end, an empty line."""
    assert marked("name: x\n\nseed: 1\n", line, column) == [""]


def test_options_and_files_that_are_gone_have_no_line(tmp_path):
    """The option says all there is to see."""
    assert excerpt(Place("--set a=b"), 80) == ""
    assert excerpt(Place(str(tmp_path / "gone.yaml"), 1, 1), 80) == ""


@pytest.mark.parametrize(
    ("old", "new", "place", "path", "allowed", "suggestion"),
    [
        ("batch_size", "batchsize", (2, 37), "task.batchsize", "batch_size", "batch_size"),
        ("small", "smal", (2, 30), "task.model", "mlp", "small"),
        ("asgd", "adacmop", (3, 9), "method", "fedavg", "adacomp"),
        ("updates: 100", "time: 90 sec", (5, 15), "stop.time", None, "90s"),
        ("count: 2", "count: 2, uplink: 10mbps", (4, 36), "fleet.edge.uplink", None, "10mbit"),
        ("updates: 100", "updates:100", (5, 9), "stop.updates:100", None, "updates: 100"),
        ("updates: 100", "updates: 0", (5, 18), "stop.updates", None, None),
    ],
)
def test_other_programs_get_what_a_person_reads(tmp_path, old, new, place, path, allowed, suggestion):
    """Place, path, what is allowed and what was probably meant are values of their own."""
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO.replace(old, new))

    (problem,) = check(file).as_dict()["problems"]

    assert (problem["source"], problem["line"], problem["column"]) == (str(file), *place)
    assert (problem["path"], problem["suggestion"]) == (path, suggestion)
    assert allowed is None or allowed in problem["allowed"]
    assert check(file).problems[0] == f"{file}:{place[0]}:{place[1]}: {path}: {problem['message']}"


def test_a_mistake_that_only_the_data_shows_has_its_place_too(tmp_path):
    """What planning refuses is located as what the schema refuses is."""
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO.replace("16", "16, split: { by-label: 20 }"))

    (problem,) = check(file).as_dict()["problems"]

    assert (problem["line"], problem["column"], problem["path"]) == (2, 60, "task.split")


def test_lines_break_at_words_and_go_on_indented():
    """No word is broken, were it longer than the line; what fits stays as it is."""
    text = "error: scenario.yaml:3:37: a-word-that-is-longer-than-any-line is not known\nfits"

    lines = wrapped(text, 30).split("\n")

    assert " ".join(line.strip() for line in lines) == text.replace("\n", " ")
    assert lines[0] == "error: scenario.yaml:3:37:"
    assert all(line.startswith("  ") for line in lines[1:-1])
    assert lines[-1] == "fits"


def test_an_error_keeps_its_places_on_the_way_between_processes():
    """What is raised in a process of a pool is what the command shows."""
    import pickle

    problem = Location(Place("s.yaml", 1, 2), ("a", "b")).problem("no; allowed: c", Choice(("c",)))

    error = pickle.loads(pickle.dumps(ScenarioError(problem, "another")))

    assert error.located[0] == problem
    assert error.problems == ("s.yaml:1:2: a.b: no; allowed: c", "another")
