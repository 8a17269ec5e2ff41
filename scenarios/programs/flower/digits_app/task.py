"""Digits of scikit-learn, and a network of one hidden layer as four arrays."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Floats = NDArray[np.float32]
HIDDEN, BATCH = 256, 32
TEST = 297
"""Images that nobody trains with."""


def data() -> tuple[Floats, NDArray[np.int64]]:
    """Return all images, (N, 64), and their labels, (N,), in an order that is the same everywhere."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (images[order] / 16).astype(np.float32), labels[order]


def initial() -> list[Floats]:
    """Return the weights that training begins with."""
    rng = np.random.default_rng(0)
    shapes = (64, HIDDEN), (1, HIDDEN), (HIDDEN, 10), (1, 10)
    return [(rng.standard_normal(shape) / np.sqrt(shape[0]) * (shape[0] > 1)).astype(np.float32) for shape in shapes]


def forward(weights: list[Floats], images: Floats) -> tuple[Floats, Floats]:
    """Return what is hidden, (N, HIDDEN), and the probability of each digit, (N, 10)."""
    hidden = np.maximum(images @ weights[0] + weights[1], 0)
    scores = hidden @ weights[2] + weights[3]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, powers / powers.sum(1, keepdims=True)


def train(weights: list[Floats], images: Floats, labels: NDArray[np.int64], rate: float) -> float:
    """Change the weights, an epoch long; return the mean loss."""
    losses = []
    for first in range(0, len(labels), BATCH):
        x, y = images[first : first + BATCH], labels[first : first + BATCH]
        hidden, shares = forward(weights, x)
        losses.append(-np.log(shares[np.arange(len(y)), y] + 1e-9).mean())
        error = (shares - np.eye(10, dtype=np.float32)[y]) / len(y)
        back = error @ weights[2].T * (hidden > 0)
        gradients = x.T @ back, back.sum(0, keepdims=True), hidden.T @ error, error.sum(0, keepdims=True)
        for k, gradient in enumerate(gradients):
            weights[k] -= rate * gradient
    return float(np.mean(losses))


def accuracy(weights: list[Floats], images: Floats, labels: NDArray[np.int64]) -> float:
    """Return the share of images that are recognised."""
    return float((forward(weights, images)[1].argmax(1) == labels).mean())
