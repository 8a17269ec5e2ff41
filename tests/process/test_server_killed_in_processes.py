"""The server, a real process, is killed ten times in one run, and the model learns as well as without."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import server_killed
from live_runs import run_live

AT_ONCE = 4


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_it_goes_on_ten_times_and_learns_as_well(tmp_path: Path) -> None:
    """Beside runs whose server lives, of several seeds, which tell how much accuracies differ anyhow."""
    ways = [("living", seed) for seed in server_killed.SEEDS]
    killed = [("restart", 1), ("policy", 2)]

    def run(way: tuple[str, int]):
        how, seed = way
        return run_live(server_killed.scenario_of(seed, how), tmp_path / f"{how}-{seed}").told

    with ThreadPoolExecutor(AT_ONCE) as threads:
        told = dict(zip([*killed, *ways], threads.map(run, [*killed, *ways]), strict=True))
    living = [server_killed.accuracy(told[way]) for way in ways]
    for way in killed:
        server_killed.check_killed(told[way], living)
