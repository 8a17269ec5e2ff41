"""Networks that the engine does not give up at once: who is in them is taken out; one that nobody is in is told of."""

import types

import pytest
import requests
from docker.errors import APIError, NotFound

from edgebed.runtimes.containers.leftovers import remove, remove_network


class Engine:
    """Stands in for an engine with one network; `count` is what it believes to be in there, `inside` what is."""

    def __init__(self, inside: tuple[str, ...] = (), miscounted: int = 0, gone: str = "") -> None:
        """`gone`: name of a container that is gone, and whose end in the network is not."""
        self.inside = {name: {"Name": f"name of {name}"} for name in inside}
        if gone:
            self.inside["ep-5678"] = {"Name": gone}
        self.count = len(self.inside) + miscounted
        self.exists = True
        self.api = types.SimpleNamespace(
            remove_network=self._remove,
            inspect_network=lambda _: {"Containers": dict(self.inside)},
            disconnect_container_from_network=self._disconnect,
        )

    def _remove(self, network: str) -> None:
        if not self.exists:
            raise NotFound(f"no network {network}")
        if self.count:
            refused = requests.Response()
            refused.status_code = 403
            raise APIError("refused", response=refused, explanation=f"network {network} has active endpoints")
        self.exists = False

    def _disconnect(self, container: str, network: str, *, force: bool) -> None:
        assert force
        found = [key for key, end in self.inside.items() if container == (end["Name"] if key[:3] == "ep-" else key)]
        if not found:
            raise NotFound(f"no container {container}")
        del self.inside[found[0]]
        self.count -= 1


@pytest.mark.parametrize("engine", [Engine(), Engine(("a stranger", "another")), Engine(("another",), gone="edge-0")])
def test_whoever_joined_a_network_is_taken_out(engine) -> None:
    """And what a container that is gone has left in it; the network is gone, and stays gone."""
    assert remove_network(engine, "1234")
    assert not engine.exists
    assert remove_network(engine, "1234")


def test_a_network_that_the_engine_has_miscounted_is_told_of() -> None:
    """It is nobody's error, and no run fails for it."""
    said: list[str] = []

    kept = remove(Engine(("a stranger",), miscounted=2), [], [{"Id": "1234", "Name": "edgebed-data"}], said.append)

    assert kept == {"edgebed-data"}
    (text,) = said
    assert text.startswith("the engine keeps the empty network edgebed-data")
    assert "sudo systemctl restart docker" in text
