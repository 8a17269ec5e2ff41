"""The command in a report: given to a shell it does the same run again."""

import html
import re
import shlex
import sys

import pytest

import edgebed
from edgebed.cli import main as cli
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

SCENARIO = """
name: tiny
task: {data: digits, model: small, batch_size: 10}
fleet: {edge: {count: 2}}
stop: {updates: 20}
variants:
  asgd: {method: asgd}
  adacomp: {method: adacomp}
  sync: {method: sync-sgd}
"""


def words_of(run):
    """The command in the report of a run, as a shell takes it apart."""
    _, how = to_html(report_page(run)).split("<h2>How to repeat it</h2>")
    return shlex.split(html.unescape(re.search("<pre>(.*?)</pre>", how)[1]))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"variants": ["sync", "asgd"], "trace": True, "set": ["stop.updates=10", "question=Is it 'so' & <why>?"]},
        {"force": True, "variants": ["adacomp"]},
    ],
    ids=["plain", "chosen and traced", "forced"],
)
def test_the_command_does_the_run_again(tmp_path, monkeypatch, given):
    """With the same options, and so the same journals, byte for byte."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEBED_RUNS_DIR", raising=False)
    (tmp_path / "my tiny.yaml").write_text(SCENARIO)
    first = edgebed.run("my tiny.yaml", runtime="simulation", processes=1, **given)

    monkeypatch.setattr(sys, "argv", [*words_of(first), "--processes", "1"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    again = edgebed.load("tiny/2")

    assert not left.value.code
    for name in ("scenario_file", "runtime", "sets", "variants", "options", "trials"):
        assert again.manifest[name] == first.manifest[name], name
    for name, trial in first.trials.items():
        assert again.trials[name].folder.journal.read_bytes() == trial.folder.journal.read_bytes()
