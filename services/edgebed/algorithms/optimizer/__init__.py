"""Optimizers by name: servers and workers step by them (stepped.py), and so do shards.

A module of this folder with a `Config` that has its name, and a line of the table, add one.
"""

from types import ModuleType

from edgebed.algorithms.optimizer import adagrad, adam, adamw, momentum, sgd, yogi

OPTIMIZERS: dict[str, ModuleType] = {
    module.Config.name: module for module in (sgd, momentum, adam, adamw, yogi, adagrad)
}
