"""The tables of an export, read back by other readers: their sums are the summary's figures."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

import edgebed
from edgebed.core import records
from edgebed.exporting import programs
from edgebed.exporting.subjects import TABLES, tables_of
from edgebed.journal.journal import JournalWriter
from edgebed.learning.objectives.registry import all_declared

ROOT = Path(__file__).parents[3]
LAYERWISE = {"steps", "module_losses", "exchanges"}
OTHERS = {each.name for each in all_declared()} - {"accuracy", "loss"}
"""What a classification does not measure."""


def number(text):
    """A cell as a summary has it."""
    return None if text == "" else float(text)


def of(rows, trial):
    """Those of one trial."""
    return [row for row in rows if row["trial"] == trial.name]


def test_the_sums_are_the_figures_of_the_summary(run, export, tables, tmp_path):
    """Of every trial: updates, bytes, staleness, accuracies, faults, deaths, and what became of each update."""
    assert export(run.path, "--output", tmp_path / "out")[0] == 0
    found = tables(tmp_path / "out")

    assert list(run.trials) == [row["trial"] for row in found["trials"]]
    for trial in run.trials.values():
        summary = trial.summary
        updates, evaluations = of(found["updates"], trial), of(found["evaluations"], trial)
        assert len(updates) == summary.updates > 0
        assert [int(row["version"]) for row in updates] == list(range(1, summary.updates + 1))
        lost, up = len(trial.series.server.restored) > 0, summary.value("ingress_bytes") or 0
        total = sum(int(row["bytes"]) for row in updates)
        assert total < up if lost else total == up
        assert sum(int(row["bits"]) for row in updates) == (summary.value("bits") or 0)
        mean = sum(int(row["staleness"]) for row in updates) / len(updates)
        assert mean == pytest.approx(summary.value("staleness_mean") or 0.0, rel=1e-12)
        assert float(updates[-1]["time_s"]) == summary.time_s
        assert len(evaluations) == summary.evaluations
        assert max(float(row["accuracy"]) for row in evaluations) == summary.best["accuracy"]
        finals = [float(row["accuracy"]) for row in evaluations if row["final"] == "true"]
        assert finals[-1:] == [*filter(None, [summary.value("final_accuracy")])]
        assert sum(row["done"] == "true" for row in of(found["faults"], trial)) == summary.faults
        assert len({row["node"] for row in of(found["nodes"], trial) if row["state"] == "died"}) == summary.nodes_died
        accounting = of(found["accounting"], trial)
        begun = summary.shards.steps_begun if summary.shards else summary.server.updates_begun
        assert sum(int(row["begun"]) for row in accounting) == begun
        if not summary.shards:
            assert sum(int(row["applied"]) for row in accounting) == summary.updates


def test_a_row_of_trials_is_the_summary_that_the_run_has(run, export, tables, tmp_path):
    """Every single value of it, and the verdict; nothing that was not measured."""
    export(run.path, "--output", tmp_path / "out")

    for row, summary in zip(tables(tmp_path / "out")["trials"], run.summary.trials, strict=True):
        assert (row["run"], row["seed"], row["runtime"]) == (run.folder.name, "3", "simulation")
        assert row["outcome"] == summary.outcome
        assert row["verdict"] == summary.fidelity.verdict
        assert row["met"] == str(summary.met).lower()
        for name in ("updates", "ingress_bytes", "time_s", "final_accuracy", "staleness_p90", "steps_min", "pulls"):
            assert number(row[name]) == summary.value(name), name


def test_layer_wise_runs_have_their_steps(root, export, tables, tmp_path):
    """As many as the summary says, with rising times; what modules learnt; what nodes sent each other."""
    run = edgebed.load("layers", runs_dir=root)
    (trial,) = run.trials.values()
    export("layers", "--output", tmp_path / "out")
    found = tables(tmp_path / "out")

    assert trial.summary.shards.steps_rolled_back > 0
    made = Counter(row["shard"] for row in found["steps"])
    assert (min(made.values()), max(made.values())) == (trial.summary.shards.steps_min, trial.summary.shards.steps_max)
    for shard in made:
        mine = [row for row in found["steps"] if row["shard"] == shard]
        assert [int(row["step"]) for row in mine] == list(range(made[shard]))
        times = [float(row["time_s"]) for row in mine]
        assert times == sorted(times)
    assert {row["predicts"] for row in found["module_losses"]} == {"gradient"}
    assert len(found["module_losses"]) == sum(len(each.loss) for each in trial.series.shards.module_losses.values()) > 0
    assert [int(row["bytes"]) for row in found["exchanges"]] == [each.bytes for each in trial.summary.shards.exchanges]
    assert found["exchanges"]


def test_only_runs_with_shards_have_the_tables_of_shards(root, export, tables, tmp_path):
    """Any other table is there, if only with its names."""
    everything = {table.name for table in TABLES if table not in programs.TABLES}

    for name, expected in (("plain", everything - LAYERWISE), ("layers", everything)):
        export(name, "--output", tmp_path / name)
        assert set(tables(tmp_path / name)) == expected


def test_links_are_those_of_the_command_that_shows_them(root, export, tables, tmp_path):
    """What was asked, both ways, for each worker of both trials."""
    export("plain", "--output", tmp_path / "out")
    rows = tables(tmp_path / "out")["links"]

    workers = [row for row in rows if row["node"].startswith("edge-")]
    assert Counter((row["trial"], row["direction"]) for row in workers) == {
        (trial, way): 3 for trial in ("asgd", "adacomp") for way in ("uplink", "downlink")
    }
    assert {row["asked_high_bit_s"] for row in workers if row["direction"] == "uplink"} == {"10000000"}
    assert {row["asked_high_bit_s"] for row in workers if row["direction"] == "downlink"} == {""}


def test_times_count_from_the_start_of_training(tmp_path, root, export, tables):
    """Also of what came before, in a live run whose nodes took three seconds to come up."""
    run = edgebed.load("plain", runs_dir=root)
    (trial, *_) = run.trials.values()
    folder = tmp_path / "live" / "0001"
    (folder / "asgd").mkdir(parents=True)
    (folder / "asgd" / "plan.json").write_bytes(trial.folder.plan.read_bytes())
    with JournalWriter(folder / "asgd" / "events.jsonl") as journal:
        journal.write(0.5, "controller", records.Node(name="edge-0", state="started"))
        journal.write(2.75, "controller", records.Node(name="edge-0", state="joined", incarnation=1))
        began = records.Trial(scenario="live", trial="asgd", seed=3, runtime="process", nodes=5, parameters=10)
        journal.write(3.0, "controller", began)
        journal.write(
            3.5, "controller", records.Node(name="edge-0", state="died", reason='a comma, a "quote"\nand more')
        )
        phases = records.Phases(steps=2, compute_s=1.0, encode_s=0.25, wait_s=0.5, pause_s=0.0)
        journal.write(4.0, "edge-0", phases)
        journal.write(4.0, "controller", records.Fault(name="kill-1", action="kill", target="edge-0", asked_s=3.25))
        for host, sent_bytes_s in (("a", 7.5), ("b", None)):
            load = records.HostLoad(busy=0.5, steal=0.0, load=1.0, lag_s=0.001, host=host, sent_bytes_s=sent_bytes_s)
            journal.write(5.0, "controller", load)

    assert export(folder, "--output", tmp_path / "out")[0] == 0
    found = tables(tmp_path / "out")

    assert [(row["time_s"], row["state"], row["reason"]) for row in found["nodes"]] == [
        ("-2.5", "started", ""), ("-0.25", "joined", ""), ("0.5", "died", 'a comma, a "quote"\nand more')
    ]  # fmt: skip
    assert [(row["time_s"], row["asked_time_s"], row["done"]) for row in found["faults"]] == [("1.0", "0.25", "true")]
    assert [(row["time_s"], row["host"], row["busy"], row["sent_bytes_s"]) for row in found["hosts"]] == [
        ("2.0", "a", "0.5", "7.5"), ("2.0", "b", "0.5", "")
    ]  # fmt: skip
    spent = [(row["phase"], row["spent_s"]) for row in found["phases"]]
    assert spent == [("compute", "1.0"), ("encode", "0.25"), ("wait", "0.5"), ("pause", "0.0")]
    assert [row["outcome"] for row in found["trials"]] == ["unfinished"]


def test_the_same_journal_gives_the_same_bytes(run, export, tmp_path):
    """Wherever it is written, and again in the same place."""
    contents = []
    for place in ("one", "other", "one"):
        export(run.path, "--output", tmp_path / place)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / place).iterdir()})

    assert contents[0] == contents[1] == contents[2]


def test_parquet_has_the_cells_of_csv_with_their_types(run, export, tables, tmp_path):
    """Row by row, column by column; what is empty there is null here, or a text of no characters."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'edgebed[parquet]'")
    export(run.path, "--output", tmp_path / "csv")
    assert export(run.path, "--format", "parquet", "--output", tmp_path / "parquet")[0] == 0
    texts = tables(tmp_path / "csv")

    assert {path.stem for path in (tmp_path / "parquet").iterdir()} == set(texts)
    for name, rows in texts.items():
        read = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        kinds = {field.name: str(field.type) for field in read.schema}
        declared = next(table for table in tables_of(run) if table.name == name)
        words = {"text": "string", "integer": "int64", "number": "double", "yes or no": "bool"}
        assert kinds == {column.name: words[column.kind] for column in declared.head}
        cells = [{key: cell_text(value) for key, value in row.items()} for row in read.to_pylist()]
        assert cells == rows


def cell_text(value):
    """As CSV writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def test_the_document_has_every_column_that_is_written(root, export, tmp_path):
    """In the order of the files, each with a meaning, beside what other objectives measure."""
    document = (ROOT / "docs/exporting.md").read_text(encoding="utf-8")
    export("layers", "--output", tmp_path / "out")

    paths = sorted((tmp_path / "out").iterdir())
    assert sorted(re.findall(r"^### `(\w+)`$", document, re.MULTILINE)) == sorted(
        [path.stem for path in paths] + [table.name for table in programs.TABLES]
    )
    keys = re.findall(r"^\| `(\w+)`", document.split("begins with these two:")[1].split("###")[0], re.MULTILINE)
    for path in paths:
        section = document.split(f"### `{path.stem}`\n")[1].split("\n### ")[0]
        described = re.findall(r"^\| `(\w+)` \| (?:text|integer|number|yes or no) \| \S.* \|$", section, re.MULTILINE)
        with path.open(encoding="utf-8", newline="") as stream:
            written = next(csv.reader(stream))
        others = {
            each for each in described if re.sub("^(final|best|last|validated|tuned|validation)_", "", each) in OTHERS
        }
        assert written == [*keys, *(each for each in described if each not in others)]
