"""Stands in for torchvision in examples of others: CIFAR-10 is digits here."""

from torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]
