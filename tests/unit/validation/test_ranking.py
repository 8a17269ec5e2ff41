"""Whether virtual time ranks methods as live runs do, from measures that are made up."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from finished_runs import RISING, finished_run

from edgebed.reports.writing.markdown import to_markdown
from validation.ranking.drawn_again import drawn_again_of
from validation.ranking.preregistration import MARGINS, Stated
from validation.ranking.ranking import DISTANCE, RANKED, Ranking, Trials, Values, rank, values_of
from validation.ranking.ranking_page import ranking_page
from validation.ranking.ranking_tables import verdict_text

SCENARIOS = [f"ranks-1-{number:03}" for number in range(6)]
TIMES = {"asgd": 9.0, "adacomp": 3.0, "fedavg": 6.0}
STATED = Stated(
    seed=1,
    scenarios=len(SCENARIOS),
    seeds=3,
    runtime="process",
    margins={"time": 0.05, **MARGINS},
    started="2026-01-01T00:00:00+00:00",
    drawn=dict.fromkeys(SCENARIOS, ("latency",)),
)


def trials(factor: Callable[[str, str], float] = lambda *_: 1.0, noise: float = 0.01, key: int = 0) -> Trials:
    """Three methods in each scenario, with three seeds that scatter; `factor`: of the time, by scenario and method."""
    draw = np.random.default_rng(key)
    found: dict[str, dict[str, dict[int, Values]]] = {}
    for scenario in SCENARIOS:
        for place, (method, time_s) in enumerate(TIMES.items()):
            for seed in (1, 2, 3):
                measures = {
                    "time": time_s * factor(scenario, method) * float(np.exp(noise * draw.normal())),
                    "bytes up": 1000.0 + 500 * place,
                    "bytes down": 3000.0,
                    "accuracy": 0.8 + 0.05 * place + 0.001 * float(draw.normal()),
                    "staleness": 2.0,
                }
                staleness = np.array([1, 2, 3])
                found.setdefault(scenario, {}).setdefault(method, {})[seed] = Values(measures, staleness)
    return found


def ranked(simulated: Trials, live: Trials, **settings) -> Ranking:
    """The ranking of these, which there is."""
    found = rank(STATED, simulated, live, **settings)
    assert found is not None
    return found


def test_measures_are_of_the_first_updates(tmp_path: Path) -> None:
    """A trial that made more than is asked for counts as if it had ended there; accuracy is the mean until then."""
    run = finished_run(tmp_path, {"asgd": (0.1, 0.5, 0.9, 0.9), "adacomp": RISING})
    found = values_of(run.trials["asgd"].series, 200)

    assert len(found.staleness) == 200
    assert found.measures == pytest.approx(
        {"time": 2.0, "bytes up": 20_000, "bytes down": 6_000, "accuracy": 0.5, "staleness": 0}
    )


def test_what_is_alike_ranks_as_live() -> None:
    """Tau is 1 by each measure, all means are equivalent; what every method has alike makes no pair."""
    found = ranked(trials(key=1), trials(key=2))
    assert (found.verdict, found.agrees) == ("ranks as live", True)
    assert {measure: (tau.tau, tau.pairs) for measure, tau in found.taus.items()} == {
        "time": (1, 18), "bytes up": (1, 18), "bytes down": (None, 0), "accuracy": (1, 18),
    }  # fmt: skip
    assert found.wrong == ()
    assert found.errors["time"].median < 0.02
    assert found.errors[DISTANCE].largest == 0
    assert [found.live_trials, len(found.places)] == [54, 18]


def test_a_simulation_that_is_off_for_all_alike_ranks_but_is_not_equivalent() -> None:
    """Ten per cent too slow: the order is right, the mean beyond the margin, and every place says so."""
    found = ranked(trials(lambda *_: 1.1, key=1), trials(key=2))
    assert (found.verdict, found.agrees) == ("ranks as live", False)
    assert found.tests["time"].verdict == "beyond the margin"
    assert found.tests["time"].mean == pytest.approx(0.1, abs=0.01)
    assert found.errors["time"].median == pytest.approx(0.1, abs=0.02)
    assert "not shown to be: time" in verdict_text(found)


def test_a_turned_pair_is_named_with_what_each_runtime_says() -> None:
    """One method is three times too slow in one scenario: two of its pairs are turned there, and tau falls."""
    found = ranked(trials(lambda s, m: 4.0 if (s, m) == (SCENARIOS[2], "adacomp") else 1.0, key=1), trials(key=2))
    assert [(pair.scenario, pair.measure, pair.first, pair.second) for pair in found.wrong] == [
        (SCENARIOS[2], "time", "adacomp", "asgd"), (SCENARIOS[2], "time", "adacomp", "fedavg"),
    ]  # fmt: skip
    assert (found.taus["time"].tau, found.taus["time"].turned) == (pytest.approx(14 / 18), 2)
    assert found.verdict == "does not rank as live"
    assert found.wrong[0].live == pytest.approx(3, rel=0.05)
    assert found.wrong[0].simulated == pytest.approx(9 / 12, rel=0.05)
    assert found.methods["adacomp"].turned == 2
    assert found.methods["asgd"].largest < 0.05


def test_what_live_seeds_do_not_tell_apart_makes_no_pair() -> None:
    """Where they scatter by half, few pairs are left; where the simulation ties two, the pair counts as tied."""
    noisy = ranked(trials(key=1), trials(noise=1.5, key=2))
    assert noisy.taus["time"].pairs < 9

    tied = ranked(trials(lambda _, m: 9.0 / TIMES[m], noise=0.0, key=1), trials(key=2))
    assert (tied.taus["time"].tau, tied.taus["time"].tied) == (0.0, 18)


def test_only_seeds_that_both_have_count_and_one_is_too_few() -> None:
    """A method with one seed live is in no place; without any there is nothing to say."""
    live = trials(key=2)
    short = {scenario: {m: dict(list(s.items())[: 1 if m == "asgd" else 2]) for m, s in methods.items()}
             for scenario, methods in live.items()}  # fmt: skip
    found = ranked(trials(key=1), short)
    assert {place.method for place in found.places} == {"adacomp", "fedavg"}
    assert {place.seeds for place in found.places} == {(1, 2)}
    assert rank(STATED, {}, live) is None


@pytest.mark.parametrize(("scenarios", "verdict"), [(3, "too few pairs to tell"), (4, "ranks as live")])
def test_a_few_pairs_do_not_tell_how_virtual_time_ranks(scenarios: int, verdict: str) -> None:
    """Nine pairs may be in order by chance; each scenario has three."""
    simulated, live = (
        {name: whole[name] for name in SCENARIOS[:scenarios]} for whole in (trials(key=1), trials(key=2))
    )
    found = ranked(simulated, live)

    assert (found.verdict, found.taus["time"].tau, found.taus["time"].pairs) == (verdict, 1, 3 * scenarios)


def test_without_any_pair_nothing_is_said() -> None:
    """Methods that are alike live leave too few pairs to tell."""
    live = trials(lambda _, m: 1 / TIMES[m], noise=0.3, key=2)
    found = ranked(live, live)
    assert found.taus["time"].tau is None or found.taus["time"].pairs < 3
    nothing = msgspec.structs.replace(
        found, verdict="too few pairs to tell", taus=dict.fromkeys(RANKED, found.taus["bytes down"])
    )
    assert verdict_text(nothing).startswith("too few pairs to tell: tau unknown in time")


def test_the_page_begins_with_the_verdict_and_names_the_worst() -> None:
    """In Markdown; what was drawn again is counted, what is left out is named, the command to repeat it is there."""
    simulated = trials(lambda s, m: 1.2 if (s, m) == (SCENARIOS[4], "fedavg") else 1.0, key=1)
    found = ranked(
        simulated, trials(key=2), drawn_again=["ranks-1-001/0004, asgd: degraded: host CPU"],
        again=drawn_again_of([(10.1, 10.0), (None, 10.0), (4.0, None)]), links={"tc": 50, "": 4},
        left_out=["ranks-1-005, seed 2, process, asgd: degraded: links"],
    )  # fmt: skip
    text = to_markdown(ranking_page(found))
    title, _, verdict, *_ = text.splitlines()

    assert title == "# ranks-1-process"
    assert verdict.startswith("**ranks as live: tau 1.00 (0.6")
    worst = text[text.index("The largest errors of the time") :]
    assert "| ranks-1-004, fedavg | " in worst.splitlines()[4]
    assert "drawn again since their conditions did not hold: 1 live trial, beside 54 that count" in text
    assert (
        "of those drawn again: live time over that of the trial that counts of the same method and seed, of 1: " in text
    )
    assert (
        "median 1.010 ×, 95 % of the differences within 1.00 %; no time is recorded of 1; no trial of the same" in text
    )
    assert "what held the links of the live trials that count: tc in 50, not recorded of 4" in text
    assert "ranks-1-005, seed 2, process, asgd: degraded: links" in text
    assert "scripts/validate ranks --scenarios 6 --seed 1 --seeds 3 --runtime process --margin 5%" in text
    assert len(ranking_page(found).charts) == 2


def test_the_page_sets_tau_beside_a_null_model_and_says_what_it_can_tell() -> None:
    """An estimate that turns one pair of three is beside virtual time; tau tells no small error from none."""
    estimates = {name: {"asgd": 6.0, "adacomp": 3.0, "fedavg": 9.0} for name in SCENARIOS}
    found = ranked(trials(key=1), trials(key=2), estimates=estimates)
    assert found.null is not None
    assert (found.null.tau.turned, found.null.tau.pairs) == (len(SCENARIOS), 3 * len(SCENARIOS))
    assert found.null.error.median == pytest.approx(1 / 3, abs=0.05)
    text = to_markdown(ranking_page(found))

    assert "| virtual time | 1.00 (" in text
    assert "| estimate in one line | 0.33 (" in text
    assert [each.tau for each in found.power][:3] == [1.0, 1.0, 1.0]
    assert "errors of up to 10 % leave a tau of 0.95 on the mean" in text
    assert "The tau that was found, 1.00, is in the range of errors of 1 %, 2 %, 3 %, 5 %, 8 %, 10 % or 20 %" in text
    without = to_markdown(ranking_page(ranked(trials(key=1), trials(key=2))))
    assert "estimate in one line |" not in without


def test_without_a_pair_tau_tells_nothing_of_errors() -> None:
    """The page says so in place of a table."""
    live = trials(lambda _, m: 1 / TIMES[m], noise=0.0, key=2)
    text = to_markdown(ranking_page(ranked(live, live)))
    assert "No pair of methods is told apart live by its time, so tau tells nothing of errors." in text
