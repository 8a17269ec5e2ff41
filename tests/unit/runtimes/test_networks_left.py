"""Networks that the engine does not give up at once: who is in them is taken out; one that nobody is in is told of."""

import types

import pytest
import requests
from docker.errors import APIError, NotFound

from edgebed.runtimes.containers.leftovers import remove, remove_network


class Engine:
    """Stands in for an engine with one network; `count` is what it believes to be in there, `inside` what is."""

    def __init__(self, inside: tuple[str, ...] = (), miscounted: int = 0) -> None:
        self.inside = list(inside)
        self.count = len(inside) + miscounted
        self.exists = True
        self.api = types.SimpleNamespace(
            remove_network=self._remove,
            inspect_network=lambda _: {"Containers": {name: {} for name in self.inside}},
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
        self.inside.remove(container)
        self.count -= 1


@pytest.mark.parametrize("engine", [Engine(), Engine(("a stranger", "another"))])
def test_whoever_joined_a_network_is_taken_out(engine) -> None:
    """It is gone, and stays gone."""
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
