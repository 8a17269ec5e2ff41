"""How the training examples are divided among the workers.

`iid`        a random permutation, cut into parts whose sizes differ by at most one.
`dirichlet`  per class, the parts' shares are drawn from Dir(alpha, ..., alpha): Hsu, Qi, Brown 2019, Measuring the
             effects of non-identical data distribution for federated visual classification, arXiv:1909.06335, in the
             per-class form of Yurochkin et al. 2019, Bayesian nonparametric federated learning of neural networks,
             ICML. A small alpha makes parts of few classes and unequal sizes, a large one approaches `iid`.
`by-label`   each part holds a fixed number of labels, as in McMahan et al. 2017, Communication-efficient learning of
             deep networks from decentralized data, AISTATS; here labels are dealt out whole, so that a part has exactly
             that many of them wherever the examples suffice.
`by-client`  all examples of a client, such as a person, are in one part; parts have several clients where there are
             more clients than parts, so that the sizes of parts differ little.

Shapes: N examples; a part is an increasing int64 vector of positions in 0..N-1. Parts never overlap.
"""

import heapq
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from edgebed.core import chance
from edgebed.core.errors import ScenarioError

ALPHA_MAX = 1e6  # beyond it the shares are equal to six digits, and the draws would overflow in the end

Labels = NDArray[np.int64]
Indices = NDArray[np.int64]


def split(
    labels: NDArray[np.integer], num_parts: int, kind: str, parameter: float | None, seed: int
) -> list[NDArray[np.int64]]:
    """Positions of the examples of each part; (N,) labels -> `num_parts` disjoint, non-empty vectors.

    `parameter` is alpha for `dirichlet`, the number of labels a part for `by-label`, and unused for `iid`. Every
    example is in a part, except with `by-label` where there are fewer places for labels than labels. The result
    depends on the arguments alone. ScenarioError if the split is impossible.
    """
    if kind not in SPLITS:
        raise ScenarioError(f"split: '{kind}' is unknown; allowed: {', '.join(SPLITS)}.")
    if num_parts < 1:
        raise ScenarioError(f"split: {num_parts} workers; there has to be at least one.")
    if num_parts > len(labels):
        examples = "1 example" if len(labels) == 1 else f"{len(labels)} examples"
        raise ScenarioError(
            f"split: {num_parts} workers cannot share {examples}, each needs at least one. "
            "Use fewer workers or a larger fraction of the data set."
        )
    generator = chance.generator(seed, "split")
    parts = SPLITS[kind](labels.astype(np.int64), num_parts, parameter, generator)
    return [np.sort(part).astype(np.int64) for part in parts]


def by_client(clients: NDArray[np.int64]) -> dict[int, Indices]:
    """Positions of each client's examples, increasing; (N,) numbers of clients -> by number."""
    order = np.argsort(clients, kind="stable")
    numbers, starts = np.unique(clients[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:])[: len(numbers)], strict=True))


def dealt(examples: Mapping[int, int], num_parts: int, seed: int) -> list[list[int]]:
    """Return the clients of each part; `examples` is how many each of them has, and there are as many as parts.

    The largest client first, each goes to the part that has the fewest examples, in an order of parts that is drawn:
    Graham 1969, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17.
    """
    assert len(examples) >= num_parts, f"{len(examples)} clients, {num_parts} parts"
    generator = chance.generator(seed, "split")
    parts: list[list[int]] = [[] for _ in range(num_parts)]
    fewest = [(0, place) for place in range(num_parts)]  # a heap
    clients = generator.permutation(sorted(examples)).tolist()
    for client in sorted(clients, key=examples.__getitem__, reverse=True):
        held, place = fewest[0]
        parts[place].append(client)
        heapq.heapreplace(fewest, (held + examples[client], place))
    return [sorted(parts[place]) for place in generator.permutation(num_parts)]


def _iid(labels: Labels, num_parts: int, _: float | None, generator: np.random.Generator) -> list[Indices]:
    return np.array_split(generator.permutation(len(labels)), num_parts)


def _dirichlet(labels: Labels, num_parts: int, alpha: float | None, generator: np.random.Generator) -> list[Indices]:
    if alpha is None or not 0.0 < alpha <= ALPHA_MAX:
        raise ScenarioError(f"split: alpha is {alpha}; a Dirichlet split needs one above 0 and at most {ALPHA_MAX:g}.")
    pieces: list[list[Indices]] = [[] for _ in range(num_parts)]
    for label in np.unique(labels):
        examples = generator.permutation(np.flatnonzero(labels == label))
        shares = generator.dirichlet(np.full(num_parts, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(examples)).astype(np.int64)
        for part, piece in zip(pieces, np.split(examples, cuts), strict=True):
            part.append(piece)
    return _fill_empty([np.concatenate(part) for part in pieces])


def _fill_empty(parts: list[Indices]) -> list[Indices]:
    """Give each empty part one example of the part that is then the largest: a worker without data cannot train."""
    for k in range(len(parts)):
        if len(parts[k]) == 0:
            largest = max(range(len(parts)), key=lambda i: len(parts[i]))
            parts[k], parts[largest] = parts[largest][:1], parts[largest][1:]
    return parts


def _by_label(
    labels: Labels, num_parts: int, labels_per_part: float | None, generator: np.random.Generator
) -> list[Indices]:
    present = np.unique(labels)
    if labels_per_part is None or labels_per_part not in range(1, len(present) + 1):
        raise ScenarioError(
            f"split: {labels_per_part} labels per worker; a split by label needs a whole number "
            f"from 1 to {len(present)}, the labels of the data."
        )
    holders = _deal(len(present), num_parts, int(labels_per_part), generator)
    pieces: list[list[Indices]] = [[] for _ in range(num_parts)]
    for label, parts in zip(present, holders, strict=True):
        examples = generator.permutation(np.flatnonzero(labels == label))
        for part, piece in zip(parts, np.array_split(examples, max(1, len(parts))), strict=False):
            pieces[part].append(piece)
    result = [np.concatenate(part) for part in pieces]
    empty = [k for k, part in enumerate(result) if len(part) == 0]
    if empty:
        raise ScenarioError(
            f"split: {len(empty)} of {num_parts} workers would get no example, since their labels have too few. "
            "Use fewer workers, more labels per worker, or a larger fraction of the data set."
        )
    return result


def _deal(num_labels: int, num_parts: int, labels_per_part: int, generator: np.random.Generator) -> list[list[int]]:
    """Return by label the parts that hold it: each takes the labels least often taken so far, ties by chance."""
    holders: list[list[int]] = [[] for _ in range(num_labels)]
    for part in range(num_parts):
        times_taken = np.array([len(parts) for parts in holders])
        order = np.lexsort((generator.random(num_labels), times_taken))
        for label in order[:labels_per_part]:
            holders[label].append(part)
    return holders


SPLITS: dict[str, Callable[[Labels, int, float | None, np.random.Generator], list[Indices]]] = {
    "iid": _iid,
    "dirichlet": _dirichlet,
    "by-label": _by_label,
}
