"""Data-parallel training as torch's documents show it: nothing in it knows of edgebed."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

INPUTS, HIDDEN, OUTPUTS, BATCH = 64, 384, 10, 32


def main() -> None:
    """Train on examples that a fixed network labels, each rank on its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    dist.init_process_group("gloo")  # by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    torch.manual_seed(0)
    teacher = torch.nn.Linear(INPUTS, OUTPUTS)
    layers = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, OUTPUTS)
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(1, steps + 1):
        inputs = torch.randn(BATCH, INPUTS)
        labels = teacher(inputs).argmax(1)
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        print(f"step {step} loss={loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
