"""What holds a program's place: a container that is in the data network alone, and has the link of its node.

    holder (NET_ADMIN alone)      the network namespace, with the link; hostname and /etc/hosts; the volumes
       ^ same namespace              of the user's files, and of the folder for temporary files, which is in memory
    program (no capability)       is in it, incarnation after incarnation: address, link and counters stay

It runs what sets links elsewhere (emulation/shaping.py), before the program's first byte and as long as the trial
lasts. In a second network the program's traffic would pass no link: then nothing starts.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import docker
from docker.types import DriverConfig, Mount

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.planned.command import Member
from edgebed.core.planned.program import ProgramPlan
from edgebed.roles.events import Injected
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.container import Container
from edgebed.runtimes.containers.engine import joined
from edgebed.runtimes.containers.labels import LABEL_HOLDER
from edgebed.runtimes.containers.links import COMMAND, Links
from edgebed.runtimes.programs import told

FILES = "/edgebed/files"
"""Where a program finds the user's files."""
SCRATCH = limits.TMP
WRITE_HOSTS = "import sys; open('/etc/hosts', 'w').write(sys.argv[1])"


class Holder:
    """The place of a node's program, for the whole trial."""

    def __init__(
        self,
        client: docker.DockerClient,
        links: Links,
        node: ProgramPlan,
        image: str,
        scratch_bytes: int,
        files: Path | None,
        tell: Callable[[Injected | EdgebedError], None],
        others: Mapping[str, Container],
    ) -> None:
        """Make and start it, and have the link set. `files`: a tar archive; `tell`: of actions on the link.

        `others`: what does things to the links of all nodes.

        InfrastructureError, or an error of the engine's.
        """
        self.client = client
        self.node = node
        self.network = links.site.data.id
        api, number = client.api, node.index + 1
        memory = {"type": "tmpfs", "device": "tmpfs", "o": f"size={scratch_bytes},mode=1777"}
        mounts = [Mount(SCRATCH, None, type="volume", driver_config=DriverConfig("local", memory))]
        mounts += [Mount(FILES, None, type="volume")] if files else []
        self.id: str = api.create_container(
            image,
            name=f"{links.site.container_name(node)}-place",
            hostname=node.node,
            entrypoint=list(COMMAND),
            user="0:0",
            labels=links.site.labels_of_helper(node, number) | {LABEL_HOLDER: node.node},
            stdin_open=True,
            host_config=api.create_host_config(network_mode=self.network, **limits.holder_settings(mounts)),
            networking_config=api.create_networking_config({self.network: api.create_endpoint_config()}),
        )["Id"]
        if files:
            with files.open("rb") as archive:
                api.put_archive(self.id, FILES, archive)
        self.link = Container(client, links, node, number, self.id, tell, others)
        """Does what is asked of the link."""
        self.link.helper = links.held_by(self.id, node, self.id, stays=True)
        self.link.link_is_set.set()
        made = api.inspect_container(self.id)
        self.volumes = {each["Destination"]: each["Name"] for each in made["Mounts"]}
        self.address = self.link.address = self.require_alone()

    @property
    def interface(self) -> str:
        """The interface that has the link."""
        assert self.link.helper is not None
        return self.link.helper.interface

    @property
    def place(self) -> str:
        """The network mode of a container that is in its network namespace."""
        return f"container:{self.id}"

    def require_alone(self) -> str:
        """Its address; InfrastructureError where it is in another network than the data network."""
        networks = joined(self.client, self.client.api.inspect_container(self.id))
        if [each["NetworkID"] for each in networks.values()] != [self.network]:
            raise InfrastructureError(
                f"{self.node.node} is in the networks {', '.join(sorted(networks)) or 'of nobody'}: what its program "
                "sends would pass no link. A program is in the trial's data network alone; take it out of all others"
            )
        return str(next(iter(networks.values()))["IPAddress"])

    def mounts(self) -> list[Mount]:
        """What a program has of it: what it may write, and its files, which it may not."""
        return [Mount(where, name, read_only=where == FILES) for where, name in self.volumes.items()]

    def write_hosts(self, members: Sequence[Member]) -> None:
        """Have all nodes known by name."""
        api = self.client.api
        command = ["python", "-c", WRITE_HOSTS, told.hosts(members)]
        run = api.exec_create(self.id, command, user="0:0")["Id"]
        said = api.exec_start(run)
        if api.exec_inspect(run)["ExitCode"]:
            why = said.decode(errors="replace").strip()
            raise InfrastructureError(f"/etc/hosts of {self.node.node} cannot be written: {why}")
