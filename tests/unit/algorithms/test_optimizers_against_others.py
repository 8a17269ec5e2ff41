"""Optimizers, schedules and clipping against independent implementations: torch's own, and numbers that Flower gave."""

import numpy as np
import pytest
import torch
from local_runs import done

from edgebed.algorithms.aggregation import synchronous
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.local_work import local_steps
from edgebed.algorithms.local_work.base import MODEL
from edgebed.algorithms.registry import PRESETS
from edgebed.algorithms.update import ModelUpdate

N, STEPS = 7, 1000
START = np.linspace(-1, 1, N, dtype="f4")
TARGET = np.cos(np.arange(N)).astype("f4")
STEEP = np.geomspace(0.1, 10, N).astype("f4")
OTHERS = {
    "sgd": ({"weight_decay": 0.1}, torch.optim.SGD, {"weight_decay": 0.1}),
    "heavy ball": (
        {"momentum": 0.9, "weight_decay": 0.1}, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1},
    ),
    "nesterov": (
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": ({"optimizer": "adam", "weight_decay": 0.1}, torch.optim.Adam, {"weight_decay": 0.1}),
    "adamw": (
        {"optimizer": "adamw", "weight_decay": 0.1, "beta_2": 0.95},
        torch.optim.AdamW, {"weight_decay": 0.1, "betas": (0.9, 0.95)},
    ),
    "adagrad": (
        {"optimizer": "adagrad", "beta_1": 0.0, "epsilon": 1e-3}, torch.optim.Adagrad, {"eps": 1e-3},
    ),
}  # fmt: skip
SCHEDULES = {
    "constant": ({}, lambda _: 1.0),
    "warm-up and cosine": (
        {"schedule": "cosine", "zero_at": 800.0, "warm_up": 100.0, "counted_in": "steps"},
        lambda step: min(1.0, (step + 1) / 100) * (1 + np.cos(np.pi * min(1.0, step / 800))) / 2,
    ),
}

BY_FLOWER = {
    "fedadagrad": [-1.0132678, -0.674444, -0.3304456, 0.0052766, 0.3430244, 0.6650234, 0.9933634],
    "fedadam": [-1.0413557, -0.7062351, -0.3420166, 0.0300112, 0.3761468, 0.6805453, 0.9737464],
    "fedavgm": [-5.8693399, -5.2252345, -0.390002, 4.4973297, 5.2498384, 1.4821352, -3.0353069],
    "fedyogi": [-1.0411873, -0.7060838, -0.3420739, 0.029845, 0.37598, 0.6805708, 0.9739133],
}
"""Where the classes of flwr 1.42.0 of these names got to with `pushed()`: eta 0.01, tau 0.001, beta_2 0.99; FedAvgM's
rate is 1, its momentum 0.9. Their rounds were numbered from a million on, where FedAdam's correction of its means,
which counts a round too many, is 1."""


def slope(theta, step):
    """The gradient of a bowl, a hundred times steeper in one direction than in another, whose bottom moves.

    One that vanishes would leave Adam with the rounding alone.
    """
    return STEEP * (theta - TARGET) + np.sin(step + np.arange(N)).astype("f4")


def learns(theta, batch):
    """The same, with a loss that nobody looks at; the mini-batch is the number of the step."""
    return slope(theta, *batch), 0.0


def by_edgebed(settings, pushes, clip_norm=None):
    """Where a worker gets to in so many pushes, whose server takes over what it has learnt."""
    config = local_steps.Config(
        learning_rate=0.01, steps=STEPS // pushes, moments="kept", clip_norm=clip_norm, **settings
    )
    work, theta, memory = local_steps.LocalWork(config), START.copy(), None
    for push in range(pushes):
        batches = list(np.arange(push * config.steps, (push + 1) * config.steps)[:, None])
        at = StepContext(push, step=push, epoch=0.5 * push, epochs=0.5)
        found = done(work, learns, theta, batches, at, memory)
        theta, memory = theta - found.vectors[MODEL], found.memory
    return theta


def by_torch(kind, settings, factor, clip_norm=None):
    """Where torch's optimizer and schedule get to."""
    theta = torch.nn.Parameter(torch.tensor(START))
    optimizer = kind([theta], lr=0.01, **settings)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for step in range(STEPS):
        theta.grad = torch.tensor(slope(theta.detach().numpy(), step))
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([theta], clip_norm)
        optimizer.step()
        schedule.step()
    return theta.detach().numpy()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", OTHERS)
def test_a_thousand_steps_lead_where_torchs_do(name, schedule):
    """To float32's rounding, in one push or in ten, as long as moments are kept."""
    (settings, kind, others), (timed, factor) = OTHERS[name], SCHEDULES[schedule]
    expected = by_torch(kind, others, factor)

    np.testing.assert_allclose(by_edgebed(settings | timed, 1), expected, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(by_edgebed(settings | timed, 10), expected, rtol=1e-4, atol=2e-6)


def test_a_norm_is_bounded_as_torch_bounds_it():
    """The direction stays."""
    expected = by_torch(torch.optim.SGD, {}, lambda _: 1.0, clip_norm=0.5)

    np.testing.assert_allclose(by_edgebed({}, 1, clip_norm=0.5), expected, rtol=1e-4, atol=1e-5)
    assert np.abs(by_edgebed({}, 1) - expected).max() > 0.01


def test_moments_that_begin_anew_lead_elsewhere():
    """So keeping them is a choice that shows."""
    settings = {"optimizer": "adamw", "steps": 10, "learning_rate": 0.01}
    kept, anew = (
        local_steps.LocalWork(local_steps.Config(moments=moments, **settings)) for moments in ("kept", "anew")
    )
    batches = [np.arange(1)] * 10
    first = done(kept, learns, START, batches)
    there = START - first.vectors[MODEL]
    ends = [done(kept, learns, there, batches, memory=memory).vectors[MODEL] for memory in (first.memory, None)]

    assert done(anew, learns, START, batches).memory is None
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


def served(preset, pushes, **settings):
    """Where the server of a preset gets to by these pushes of one worker."""
    given = {key: value for key, value in PRESETS[preset]["aggregation"].items() if key != "name"}
    server = synchronous.Aggregation(synchronous.Config(**(given | settings)), START.copy())
    server.joined("a")
    for push in pushes:
        server.push("a", ModelUpdate(N, None, push), server.version)
    return server.theta


def pushed(count):
    """Changes of a model, as a worker would push them."""
    return [np.sin(np.arange(N) + k).astype("f4") for k in range(count)]


@pytest.mark.parametrize("preset", BY_FLOWER)
def test_servers_get_to_where_flowers_do(preset):
    """Their own classes, which a script outside of the tests has run."""
    np.testing.assert_allclose(served(preset, pushed(5)), BY_FLOWER[preset], rtol=1e-5, atol=2e-6)


def test_dilocos_server_steps_by_nesterovs_momentum_as_torch_does():
    """With 0.7 and 0.9: m <- 0.9 m + D ; x <- x - 0.7 (D + 0.9 m)."""
    pushes = pushed(20)
    theta = torch.nn.Parameter(torch.tensor(START))
    outer = torch.optim.SGD([theta], lr=0.7, momentum=0.9, nesterov=True)
    for push in pushes:
        theta.grad = torch.tensor(push)
        outer.step()

    np.testing.assert_allclose(served("diloco", pushes), theta.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_one_worker_and_a_server_that_takes_over_is_training():
    """DiLoCo with one worker, one step a push, and plain steps outside: AdamW itself."""
    settings = {key: value for key, value in PRESETS["diloco"]["local_work"].items() if key != "name"} | {"steps": 1}
    work, memory = local_steps.LocalWork(local_steps.Config(**settings)), None
    server = synchronous.Aggregation(synchronous.Config(learning_rate=1.0), START.copy())
    server.joined("a")
    theta = torch.nn.Parameter(torch.tensor(START))
    optimizer = torch.optim.AdamW([theta], lr=4e-4, betas=(0.9, 0.95), weight_decay=0.1)
    for push in range(STEPS):
        at = StepContext(push, step=push, epoch=0.5 * push, epochs=0.5)
        found = done(work, learns, server.theta.copy(), [np.array([push])], at, memory)
        memory = found.memory
        server.push("a", ModelUpdate(N, None, found.vectors[MODEL]), server.version)
        theta.grad = torch.tensor(slope(theta.detach().numpy(), push))
        torch.nn.utils.clip_grad_norm_([theta], 1.0)
        optimizer.step()

    np.testing.assert_allclose(server.theta, theta.detach().numpy(), rtol=1e-4, atol=1e-5)
