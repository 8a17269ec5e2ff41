"""The images of the nodes, run as the runtime runs them: no rights, no network, nothing to write to but /tmp."""

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgebed.runtimes.containers.project import ImageNames

NODE_MAIN = "/opt/edgebed/services/edgebed/runtimes/containers/node_main.py"
CAPS = (
    "--init", "--read-only", "--tmpfs=/tmp", "--user=10001:10001", "--cap-drop=ALL", "--network=none",
    "--security-opt=no-new-privileges", "--memory=64m", "--memory-swap=64m", "--pids-limit=64",
)  # fmt: skip

HOG = """
held = []
while True:
    held.append(b"x" * 2**20)
"""
WAITER = """
import sys, time
print("ready", flush=True)
time.sleep(2)
sys.exit(7)
"""
TRAINING = """
import os, torch
from torch.nn import functional
import edgebed.learning.models.registry, edgebed.learning.network, edgebed.runtimes.live.node
assert torch.version.cuda is None
for module in (edgebed.runtimes.live.node, torch.nn.modules.conv):
    assert os.path.exists(module.__cached__), f"{module.__file__} is not compiled"
folder = os.path.dirname(torch.__file__)
assert not {"test", "include"} & set(os.listdir(folder))
model = torch.nn.Linear(10, 2)
inputs, labels = torch.ones(4, 10), torch.tensor([0, 1, 0, 0])
functional.cross_entropy(model(inputs), labels).backward()
torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(2, 2))
torch.utils.checkpoint.checkpoint(model, inputs, use_reentrant=False).sum().backward()
print(os.getuid(), model.weight.grad.abs().sum().item() > 0)
"""


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a container, which is gone afterwards."""
    name = f"edgebed-test-{uuid.uuid4().hex[:8]}"
    yield name
    docker("rm", "--force", name)


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the command says."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)


def node(folder: Path, program: str) -> tuple[str, ...]:
    """The arguments for a node of the server's image that runs another program in place of its own."""
    main = folder / "node_main.py"
    main.write_text(program)
    main.chmod(0o644)
    return *CAPS, f"--volume={main}:{NODE_MAIN}:ro", ImageNames.named().server


def test_a_node_out_of_memory_leaves_its_peak_and_limit(engine, name, tmp_path):
    """The kernel kills Python; what started it lives on to say so, since the cgroup is gone a moment later."""
    done = docker("run", f"--name={name}", *node(tmp_path, HOG))

    limit = 64 * 2**20
    assert (done.returncode, done.stderr) == (137, f"edgebed-node: memory peak={limit} limit={limit} oom_kills=1\n")


def test_a_node_ends_by_itself_and_not_by_a_signal(engine, name, tmp_path):
    """Compose sends SIGTERM to nodes and controller at once, and the controller still needs the nodes."""
    docker("run", "--detach", f"--name={name}", *node(tmp_path, WAITER))
    with subprocess.Popen(["docker", "logs", "--follow", name], stdout=subprocess.PIPE, text=True) as logs:
        assert logs.stdout.readline() == "ready\n"
        docker("kill", "--signal=TERM", name)
        assert docker("wait", name).stdout == "7\n"

    assert docker("inspect", "--format={{.State.ExitCode}}", name).stdout.strip() == "7"


def test_the_server_needs_no_torch(engine, name):
    """Its image has none, and everything that it imports is there."""
    modules = ("runtimes.live.live_node", "roles.server.parameter_server", "runtimes.containers.node_main")
    program = f"import {', '.join(f'edgebed.{module}' for module in modules)}, torch"

    done = docker("run", f"--name={name}", "--entrypoint=python", *CAPS, ImageNames.named().server, "-c", program)

    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'"


def test_a_worker_trains_where_it_can_write_nothing(engine, name):
    """With all that a model may use of torch, compiled beforehand, as nobody in particular."""
    caps = [cap.replace("64m", "512m") for cap in CAPS]

    done = docker("run", f"--name={name}", "--entrypoint=python", *caps, ImageNames.named().worker, "-c", TRAINING)

    assert (done.stderr, done.stdout) == ("", "10001 True\n")
