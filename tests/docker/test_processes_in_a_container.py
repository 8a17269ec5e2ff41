"""One container, one testbed: the process runtime in it, as in a pod of a cluster that has no engine to ask."""

import subprocess

import pytest

from edgebed.core.package import SHIPPED
from edgebed.runtimes.containers.project import project_name

RIGHTS = (
    "--cap-add=NET_ADMIN", "--cap-add=SYS_ADMIN", "--security-opt=apparmor=unconfined",
    "--security-opt=seccomp=unconfined", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw",
)  # fmt: skip
"""As docs/runtimes.md names them."""
SETTINGS = ("fleet.edge.uplink=2mbit", "fleet.edge.downlink=4mbit", "stop.updates=40", "expect=null")


@pytest.mark.parametrize(
    ("rights", "links", "are_capped"),
    [
        (RIGHTS, "by the kernel's queues (tc) in a network namespace for each node.", True),
        (
            (),
            "by the transport's own model of a link, and not by the kernel: a network namespace cannot be made",
            False,
        ),
    ],
    ids=["with rights", "without"],
)
def test_the_kernel_holds_links_and_caps_of_processes_in_a_container(rights, links, are_capped) -> None:
    """With the rights that the page names; without them models do, and the run says why."""
    command = ["python", "-m", "edgebed", "run", "/scenarios/quickstart.yaml", "--runtime=process", "--variant=asgd"]
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    place = ("--network=none", "--user=0", "--workdir=/tmp", f"--volume={SHIPPED / 'scenarios'}:/scenarios:ro")
    ran = subprocess.run(
        ["docker", "run", "--rm", *place, *rights, "--entrypoint", command[0], f"edgebed-controller:{project_name()}",
         *command[1:], *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert f"Rates of links are held {links}" in said
    assert ("CPU caps are held by the kernel" in said) == are_capped
