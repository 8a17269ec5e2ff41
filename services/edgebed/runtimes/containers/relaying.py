"""The address at which nodes reach the controller: its own, or that of a relay (relay.py) which this starts."""

import threading

import docker

from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.labels import PREFIX
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.relay import PORT
from edgebed.runtimes.containers.site import ManagedSite

COMMAND = ("python", "-m", "edgebed.runtimes.containers.relay")
SCHEME = "tcp://"


class Relaying:
    """Starts a trial's relay when the first node asks for the controller's address."""

    def __init__(self, client: docker.DockerClient, site: ManagedSite, image: str) -> None:
        """`client` is the first host's; `image` the relay's."""
        self.client = client
        self.site = site
        self.image = image
        self.lock = threading.Lock()
        self.relayed: dict[str, str] = {}
        """Address of the relay by the controller's."""

    def address(self, controller: str) -> str:
        """Return what nodes connect to for a controller that listens there; from any thread."""
        if self.site.bridge is None:
            return controller
        with self.lock:
            if controller not in self.relayed:
                self.relayed[controller] = self._start(controller.removeprefix(SCHEME))
            return self.relayed[controller]

    def _start(self, target: str) -> str:
        api, site = self.client.api, self.site
        assert site.bridge is not None
        made = str(
            api.create_container(
                self.image,
                name=f"{site.name}-relay",
                entrypoint=[*COMMAND, target],
                user=limits.USER,
                labels=site.labels | {f"{PREFIX}.role": "relay"},
                host_config=api.create_host_config(network_mode=site.management.id, **limits.relay_settings()),
                networking_config=api.create_networking_config({site.management.id: api.create_endpoint_config()}),
            )["Id"]
        )
        try:
            api.connect_container_to_network(made, site.bridge.id)
            api.start(made)
            networks = api.inspect_container(made)["NetworkSettings"]["Networks"].values()
        except BaseException:
            remove_container(self.client, made)
            raise
        (host,) = (each["IPAddress"] for each in networks if each["NetworkID"] == site.management.id)
        return f"{SCHEME}{host}:{PORT}"
