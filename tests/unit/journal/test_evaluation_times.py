"""An accuracy belongs to the moment its model existed, however long the evaluator took."""

from pathlib import Path

from evaluated import evaluation

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series


def test_an_evaluation_is_placed_where_its_version_was_reached(tmp_path: Path) -> None:
    """Version 0 at the start of training; version 1 when it was applied, though measured two seconds later."""
    update = records.Update(
        worker="edge-0", incarnation=1, step=0, version=1, base=0, staleness=0, entries=1, bits=64, bytes=90, loss=1.0
    )
    with JournalWriter(tmp_path / "events.jsonl") as journal:
        journal.write(
            5.0,
            "controller",
            records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=3, parameters=9),
        )
        journal.write(6.0, "evaluator", evaluation(version=0, accuracy=0.1, loss=2.0))
        journal.write(6.5, "server", update)
        journal.write(8.5, "evaluator", evaluation(version=1, accuracy=0.9, loss=1.0, final=True))

    evaluations = Series.from_journal(tmp_path / "events.jsonl").evaluations

    assert evaluations.t.tolist() == [0.0, 1.5]
    assert evaluations.ingress_bytes.tolist() == [0, 90]
