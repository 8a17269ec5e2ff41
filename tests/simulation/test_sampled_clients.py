"""A round of sampled clients, which no setting asks for, can be had by an aggregation of one's own."""

import json
from pathlib import Path

import edgebed
from edgebed.core import records

AGGREGATION = '''
"""Federated averaging over clients that are drawn for each round; the others wait for their answer."""

from dataclasses import dataclass

from edgebed.algorithms.aggregation import synchronous
from edgebed.core import chance


@dataclass(frozen=True, kw_only=True)
class Config(synchronous.Config):
    """How many take part, and the seed that draws them."""

    clients: int = 2
    draws: int = 1


class Aggregation(synchronous.Aggregation):
    """All take part in the first round, by which they join; then only those who are answered."""

    config: Config
    session = ("idle",)

    def __init__(self, config, theta, version=0):
        super().__init__(config, theta, version)
        self.idle = set()

    def left(self, worker):
        self.idle.discard(worker)
        return super().left(worker)

    def _end(self):
        ended = super()._end()
        there = self.idle.union(ended.released)
        drawn = sorted(there, key=lambda worker: chance.uniform(self.config.draws, "clients", worker, self.version))
        self.members = set(drawn[: self.config.clients])
        self.idle = there - self.members
        return ended._replace(released=tuple(sorted(self.members)))
'''


def test_an_own_aggregation_answers_only_those_whom_it_draws(tmp_path: Path) -> None:
    """Rounds are of two after the first, and of others each time; nobody who waits is given up."""
    (tmp_path / "own_sampling.py").write_text(AGGREGATION)
    scenario = {
        "name": "sampled", "seed": 1, "stop": {"updates": 46}, "evaluation": {"every": "46 updates"},
        "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "5ms"},
        "method": {"preset": "sync-sgd", "aggregation": {"name": "own_sampling:Aggregation", "clients": 2}},
        "fleet": {"edge": {"count": 6}},
    }  # fmt: skip
    (tmp_path / "sampled.yaml").write_text(json.dumps(scenario))
    run = edgebed.run(tmp_path / "sampled.yaml", runtime="simulation", processes=1, runs_dir=tmp_path / "runs")
    (trial,) = run.trials.values()
    rounds: dict[int, list[str]] = {}
    for _, _, record in trial.events():
        if isinstance(record, records.Update):
            rounds.setdefault(record.base, []).append(record.worker)
    first, *later = rounds.values()

    assert run.exit_code == 0
    assert len(first) == 6
    assert {len(each) for each in later} == {2}
    assert {worker for each in later for worker in each} == set(first)
