"""Runtimes that host the nodes: the shells around the hearts, and the ways to start nodes."""
