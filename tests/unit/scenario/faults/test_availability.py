"""Workers come and go as recorded devices did."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.scenario.faults.flap import SHORTEST_S
from edgebed.scenario.load import load_scenario, resolved_yaml
from edgebed.scenario.mistakes.problems import Problems
from edgebed.scenario.traces.availability import read_availability
from edgebed.scenario.traces.cells import PROBLEMS_MAX

GOOD = """\
# source: by hand
device,note,from_s,until_s
a,x,5,20
b,,0,12.5
a,,30,40
"""


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Writes a recording as `a.csv` in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        Path("a.csv").write_text(text)
        return Path("a.csv")

    return write


def shown(faults):
    """Each absence: who, when it begins, and its steps."""
    return [
        (fault.node, fault.trigger.at_s, [(each.after_s, each.injection.action) for each in fault.steps])
        for fault in faults
    ]


def test_a_worker_is_away_when_its_device_was(recorded, resolve):
    """Before its first row, between two, and after its last for good; devices are workers in their order."""
    recorded(GOOD)

    faults = resolve({"availability": "a.csv", "of": "hub", "at": "10s"})

    assert shown(faults) == [
        ("hub-0", 10.0, [(0.0, "kill"), (5.0, "launch")]),
        ("hub-0", 30.0, [(0.0, "kill"), (10.0, "launch")]),
        ("hub-0", 50.0, [(0.0, "kill")]),
        ("hub-1", 22.5, [(0.0, "kill")]),
    ]


def test_a_worker_may_lose_its_network_alone_and_time_may_pass_faster(recorded, resolve):
    """From a place in the recording on; an absence that then lasts less than a quarter of a second is none."""
    recorded(GOOD.replace("a,,30", "a,,20.4"))

    faults = resolve({"availability": "a.csv", "of": "hub", "at": "0s", "away": "cut", "skip": "10s", "faster": 2})

    assert shown(faults) == [("hub-0", 15.0, [(0.0, "cut")]), ("hub-1", 1.25, [(0.0, "cut")])]


def test_devices_that_are_called_as_workers_are_these(recorded, resolve):
    """And workers that no row names are always there."""
    recorded("device,from_m,until_m\nphones-3,0,1\n")

    assert shown(resolve({"availability": "a.csv", "of": "phones", "at": "0s"})) == [
        ("phones-3", 60.0, [(0.0, "kill")])
    ]


def test_only_the_first_mistakes_of_many_are_told(recorded):
    """The rest would say nothing new."""
    with pytest.raises(Problems) as caught:
        read_availability(recorded("device,from_s,until_s\n" + "a,1,0\n" * 100))
    assert len(caught.value.problems) == PROBLEMS_MAX


def test_the_file_is_found_beside_the_scenario_and_the_resolved_form_finds_it_from_anywhere(tmp_path, monkeypatch):
    """It stands in the run's folder."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.csv").write_text(GOOD)
    (tmp_path / "sub/s.yaml").write_text(
        "name: s\ntask: { data: digits, model: small }\nmethod: asgd\nstop: { time: 60s }\n"
        "fleet: { edge: { count: 2 } }\nfaults: [{ availability: a.csv, at: 0s }]\n"
    )
    scenario = load_scenario(tmp_path / "sub/s.yaml")
    (tmp_path / "r.yaml").write_text(resolved_yaml(scenario))

    assert load_scenario(tmp_path / "r.yaml").trials == scenario.trials
    (tmp_path / "sub/a.csv").unlink()
    with pytest.raises(ScenarioError, match=r"s\.yaml:6:26: faults\.0\.availability: .*a\.csv cannot be read: No such"):
        load_scenario(tmp_path / "sub/s.yaml")


@settings(max_examples=2 * settings.default.max_examples)
@given(
    gaps=st.lists(st.integers(1, 5000), min_size=2, max_size=20).filter(lambda gaps: len(gaps) % 2 == 0),
    faster=st.sampled_from([0.5, 1.0, 30.0]),
)
def test_a_worker_is_there_exactly_when_its_device_was(tmp_path_factory, resolve, gaps, faster):
    """Up to what is too short to be done, at any moment; it never goes twice without coming back."""
    path = tmp_path_factory.mktemp("there") / "a.csv"
    times = [sum(gaps[: k + 1]) for k in range(len(gaps))]
    stretches = list(zip(times[::2], times[1::2], strict=True))
    path.write_text("device,from_ms,until_ms\n" + "".join(f"hub-0,{begin},{end}\n" for begin, end in stretches))

    faults = resolve({"availability": str(path), "of": "hub", "at": "0s", "faster": faster})

    away = []
    for fault in faults:
        assert fault.node == "hub-0"
        assert not away or away[-1][1] <= fault.trigger.at_s
        away.append((fault.trigger.at_s, fault.trigger.at_s + fault.steps[1].after_s if fault.steps[1:] else 1e9))
    present = [(begin / 1000 / faster, end / 1000 / faster) for begin, end in stretches]
    for begin_s, end_s in present:
        if end_s - begin_s >= SHORTEST_S:
            middle_s = (begin_s + end_s) / 2
            assert not any(gone_s < middle_s < back_s for gone_s, back_s in away)
    assert away[-1][1] == 1e9
