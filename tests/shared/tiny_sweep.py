"""A sweep that takes seconds: two methods over two uplinks and two numbers of devices, on the bundled digits."""

from pathlib import Path

SWEEP = """\
name: tiny-sweep
question: Which of them wins?
task: { data: digits, model: small, batch_size: 10 }
fleet: { edge: { count: 2, cpus: 0.4, uplink: 1mbit, downlink: 16mbit } }
evaluation: { every: 40 updates }
checkpoints: { every: 20 updates }
stop: { updates: 600 }
variants:
  dense: { method: sync-sgd }
  top-k: { method: { preset: sync-sgd, compression: { name: top-k, fraction: 0.05, residual: true } } }
sweep:
  accuracy: 0.8
  over:
    fleet.edge.uplink: [16mbit, 250kbit]
    fleet.edge.count: [2, 3]
"""


SMALL = SWEEP.replace("    fleet.edge.count: [2, 3]\n", "").replace("accuracy: 0.8", "accuracy: 0.6")
"""Over the uplinks alone, to an accuracy that is soon reached."""


def write_sweep(folder: Path, text: str = SWEEP) -> Path:
    """Lay it into `folder` as a user would; its path."""
    path = folder / "tiny.yaml"
    path.write_text(text)
    return path
