"""Devices of a class: those that come with edgebed, the user's own, and a speed alone."""

from pathlib import Path

import pytest

from edgebed.core.planned.device_core import REFERENCE, Core
from edgebed.planning.planning import plan_trials
from edgebed.scenario.devices.profile import read_device, shipped_devices
from edgebed.scenario.load import load_scenario

SCENARIO = {
    "name": "devices", "task": {"data": "digits", "model": "small"}, "method": "asgd", "stop": {"updates": 10},
}  # fmt: skip
OWN = """speed: 2 GFLOP/s
overhead: 3ms
memory: 512MiB
measured: what edgebed's own models take
source: my board
error: 10 %
"""


def section(device, folder=None):
    """The only class of a scenario."""
    place = None
    if folder:
        place = folder / "scenario.yaml"
        keys = ", ".join(f"{key}: {value}" for key, value in device.items())
        place.write_text(
            "name: devices\ntask: {data: digits, model: small}\nmethod: asgd\nstop: {updates: 10}\n"
            f"fleet: {{edge: {{{keys}}}}}\n"
        )
    (trial,) = load_scenario(place or SCENARIO | {"fleet": {"edge": device}}).trials.values()
    return trial.fleet["edge"]


@pytest.mark.parametrize("name", shipped_devices())
def test_every_device_says_where_its_speed_comes_from(name: str) -> None:
    """A profile has what was measured, who published it, and the error; a slower core needs longer for everything."""
    file = read_device(name)

    assert file.core.device == name
    assert 1e9 < file.core.flop_s < 1e11
    assert file.core.overhead_s * file.core.flop_s == pytest.approx(REFERENCE.overhead_s * REFERENCE.flop_s)
    assert "https://" in file.content.source
    assert "one thread" in file.content.measured
    assert file.content.error


def test_there_are_six_devices_or_more() -> None:
    """Boards, a phone, a laptop, servers."""
    assert len(shipped_devices()) >= 6


def test_a_device_of_ones_own_is_a_file_beside_the_scenario(tmp_path: Path) -> None:
    """Found from the scenario's folder; called as the file is."""
    (tmp_path / "board.yaml").write_text(OWN)
    found = section({"device": "board.yaml"}, tmp_path)

    assert found.core == Core(flop_s=2e9, overhead_s=0.003, device="board")
    assert found.memory_cap == 2**29


def test_the_memory_of_a_device_is_the_cap_unless_another_is_given() -> None:
    """In the plan, too."""
    assert section({"device": "raspberry-pi-4"}).memory_cap == 2**32
    assert section({"device": "raspberry-pi-4", "memory": "1GiB"}).memory_cap == 2**30
    (trial,) = plan_trials(load_scenario(SCENARIO | {"fleet": {"edge": {"device": "raspberry-pi-4"}}}))
    assert [node.memory_bytes for node in trial.plan.workers()] == [2**32]


def test_a_class_that_says_nothing_has_the_reference_core() -> None:
    """A speed alone has the reference core's time for everything else, in proportion."""
    assert section({}).core is None
    assert section({"speed": "5 GFLOP/s"}).core == Core(flop_s=5e9, overhead_s=0.002)
