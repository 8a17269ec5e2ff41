"""Runs of a regression by client, of a language model and of own measures: real plans, journals of chosen values.

The file is also the user's module that their scenarios name: each person has examples of their own, one of them a
single one, and one is in the test part alone.
"""

import math

import numpy as np
from finished_runs import finished_run
from torch.nn import functional

from edgebed import DataSet, Supervised, TaskMeasure
from edgebed.core import records
from edgebed.journal.journal import JournalWriter

NAMES = np.array(["ann", "ben", "cleo", "dan", "eve"])
TRAINING, TESTING = (12, 9, 7, 1, 0), (6, 6, 6, 6, 6)
"""Examples of each person."""
LETTERS, PLACES = 9, 5
VOICES = {
    "name": "voices",
    "question": "How far off is a score that is told from the voice?",
    "task": {
        "data": "told_tasks:voices", "split": "by-client", "model": "logistic", "batch_size": 4, "validation": "20%",
        "objective": {"name": "regression", "unit": "points"}, "gradient_time": "5ms",
    },
    "fleet": {"phone": {"count": 2}},
    "evaluation": {"every": "100 updates", "by_client": {"fine_tune": {"steps": 2, "learning_rate": 0.01}}},
    "stop": {"measure": "mae", "at": 5, "updates": 300},
    "expect": {"best_r2": ">= 0.8", "final_mae": "<= 4", "client_worst_decile_mae": "<= 6"},
    "variants": {"asgd": {"method": "asgd"}, "fedavg": {"method": "fedavg"}},
}  # fmt: skip
VERSES = {
    "name": "verses",
    "question": "How many bytes does a language model need?",
    "task": {
        "data": "told_tasks:verses", "model": "gru", "width": 8, "batch_size": 4, "objective": "next-token",
        "gradient_time": "5ms",
    },
    "fleet": {"edge": {"count": 2}},
    "evaluation": {"every": "100 updates"},
    "stop": {"updates": 300},
    "expect": {"best_perplexity": "<= 4"},
    "variants": {"asgd": {"method": "asgd"}, "dgc": {"method": "dgc"}},
}  # fmt: skip


def voices() -> DataSet:
    """Three numbers that are heard, and the score that follows."""
    return DataSet(**{name: _people(sizes) for name, sizes in (("train", TRAINING), ("test", TESTING))})


def _people(sizes):
    who = np.repeat(np.arange(len(sizes)), sizes)
    x = np.random.default_rng(sum(sizes)).normal(size=(len(who), 3)).astype("f4")
    return x, 20 + x @ np.array([4.0, -2.0, 1.0]) + who, NAMES[who]


def verses() -> DataSet:
    """Letters that count."""
    rows = (np.arange(40)[:, None] + np.arange(PLACES + 1)) % LETTERS
    x, y = rows[:, :-1], rows[:, 1:]
    return DataSet(train=(x[:30], y[:30]), test=(x[30:], y[30:]), outputs=LETTERS)


class Merit(Supervised):
    """What is told of it is the better the more there is."""

    measures = (TaskMeasure("merit", better="more"),)

    def loss_of(self, outputs, targets):
        """Return the mean square."""
        return functional.mse_loss(outputs[:, 0], targets)

    def sums_of(self, outputs, targets):
        """Return its sum."""
        return {"merit": (self.loss_of(outputs, targets) * len(targets), len(targets))}


class Demerit(Merit):
    """What is told of it is the better the less there is."""

    measures = (TaskMeasure("merit", better="less"),)


def of_error(mae):
    """What is measured of a regression that is so far off."""
    return {"mae": mae, "rmse": 1.25 * mae, "r2": 1 - (mae / 10) ** 2, "loss": mae**2 / 2}


def of_perplexity(perplexity):
    """What is measured of a language model that is so perplexed."""
    return {"perplexity": perplexity, "loss": math.log(perplexity), "accuracy": 1 / perplexity}


def told_run(root, scenario, values, *, clients=None, of=of_error, **given):
    """A run whose trials measured `values[trial]`, each a pair of what the test and the validation part gave.

    `clients` has by trial what `of` makes measures of, for ann, ben, cleo, dan and eve at the end, and after
    fine-tuning.
    """
    run = finished_run(root, values, scenario=scenario, **given)
    for trial, (plain, tuned) in (clients or {}).items():
        version = 100 * (len(values[trial]) - 1)
        told = records.Clients(
            version=version, clients=tuple(range(len(plain))), final=True,
            measured={name: tuple(of(each)[name] for each in plain) for name in of(1.0)},
            tuned={name: tuple(of(each)[name] for each in tuned) for name in of(1.0)} if len(tuned) else {},
        )  # fmt: skip
        with JournalWriter(run.folder.trial(trial).journal) as journal:
            journal.write(float(len(values[trial])), "evaluator", told)
    return run
