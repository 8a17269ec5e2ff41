"""Data-parallel training by torchft: a replica that died comes back, and takes its weights from another one."""

import argparse
import os
import random
from datetime import timedelta

import torch
from sklearn.datasets import load_digits
from torchft import Manager, Optimizer, ProcessGroupGloo

HIDDEN, BATCH = 256, 32


def main() -> None:
    """Train on digits until so many steps have been committed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    images, labels = (torch.as_tensor(each) for each in load_digits(return_X_y=True))
    images = images.float() / 16
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 10))
    inner = torch.optim.SGD(net.parameters(), 0.2)
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    _store = torch.distributed.TCPStore(*place, is_master=True, wait_for_workers=False)  # as torchrun serves one
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
        min_replica_size=2,
        load_state_dict=lambda state: (net.load_state_dict(state["net"]), inner.load_state_dict(state["inner"])),
        state_dict=lambda: {"net": net.state_dict(), "inner": inner.state_dict()},
        replica_id=os.environ["EDGEBED_NODE"],
        timeout=timedelta(seconds=10),
    )
    optimizer = Optimizer(manager, inner)
    draw = random.Random(os.environ["EDGEBED_NODE"])  # noqa: S311 - no secret
    while manager.current_step() < steps:
        chosen = draw.sample(range(len(labels)), BATCH)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images[chosen]), labels[chosen])
        loss.backward()
        for work in [manager.allreduce(each.grad) for each in net.parameters()]:
            work.wait()
        optimizer.step()
        step, replicas = manager.current_step(), manager.num_participants()
        print(f"step {step} replicas={replicas} loss={loss.item():.4f}", flush=True)
    manager.shutdown()
    os._exit(0)  # threads of torchft's that still run would abort an ordinary end


if __name__ == "__main__":
    main()
