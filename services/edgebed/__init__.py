"""edgebed: train a neural network across a fleet of emulated edge devices, under conditions that are checked."""

__version__ = "0.1.0"
