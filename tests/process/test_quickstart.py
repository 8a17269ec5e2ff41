"""The command a new user runs first, as a user runs it."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from warm_command import WarmCommand

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


def edgebed(*arguments: str, timeout_s: float = 110.0) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "edgebed", *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
    )


def test_the_quickstart_meets_its_expectations_and_leaves_a_report(tmp_path: Path) -> None:
    """Two trials over real processes; --json puts nothing but JSON on standard output."""
    ended = edgebed("run", str(QUICKSTART), "--runs-dir", str(tmp_path), "--json")
    summary = json.loads(ended.stdout)

    assert ended.returncode == 0, ended.stderr
    assert [trial["trial"] for trial in summary["trials"]] == ["asgd", "adacomp"]
    asgd, adacomp = summary["trials"]
    assert adacomp["server"]["ingress_bytes"] < asgd["server"]["ingress_bytes"] / 5
    report = (tmp_path / "quickstart/latest/report.html").read_text()
    assert "How many bytes does AdaComp save" in report
    assert "http://" not in report.replace("http://www.w3.org/", "")
    shown = edgebed("show", "quickstart", "--runs-dir", str(tmp_path), "--json")
    assert json.loads(shown.stdout)["trials"] == summary["trials"]


def test_while_a_run_goes_on_prometheus_finds_every_node(tmp_path: Path) -> None:
    """The controller lists the nodes, each serves its own metrics, and the status tells how far the run is."""
    port = 29_100
    process = WarmCommand("run", str(QUICKSTART), "--runs-dir", str(tmp_path), "--port", str(port))
    try:
        targets = []
        deadline_s = time.monotonic() + 60
        while len(targets) < 6 or get_json(port, "/status")["updates"] < 400:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
            targets = get_json(port, "/targets")
        pages = {target["labels"]["node"]: get(f"http://{target['targets'][0]}/metrics") for target in targets}
        status = get_json(port, "/status")
        controller = get(f"http://127.0.0.1:{port}/metrics")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    assert set(pages) == {"server", "evaluator", "edge-0", "edge-1", "edge-2", "edge-3"}
    assert sample(pages["server"], 'edgebed_ps_updates_total{result="applied"}') >= 100
    assert sample(pages["server"], 'edgebed_ps_ingress_bytes_total{kind="push"}') > 100 * 19_000
    assert sample(pages["edge-0"], "edgebed_worker_iterations_total") > 10
    here = 'run="quickstart/0001",state="running",trial="asgd"'
    assert sample(controller, f'edgebed_nodes{{device_class="edge",{here}}}') == 4
    assert status["trial"] == "asgd"
    assert status["nodes_up"] == 6


def get(url: str) -> str:
    """The page at `url`; empty while nobody listens yet."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def get_json(port: int, path: str) -> object:
    """What the controller answers, or something empty while it is not up."""
    page = get(f"http://127.0.0.1:{port}{path}")
    return json.loads(page) if page else ([] if path == "/targets" else {"updates": 0})


def sample(page: str, name: str) -> float:
    """The value of one sample."""
    return next(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(f"{name} "))
