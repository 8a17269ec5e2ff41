"""Measures of speed and memory: `scripts/bench`."""

PARTS = {
    "encoding": "encoding",
    "compression": "compression",
    "nodes": "nodes",
    "simulation": "simulation",
    "churn": "churn",
    "server": "server",
    "security": "security",
    "durability": "durability",
    "update": "update_parts",
    "direct": "direct_minimisation",
    "links": "links",
    "namespaces": "namespaces",
    "containers": "containers",
    "faults": "faults",
    "shards": "shards",
    "watching": "watching",
    "controller": "controller",
}
"""The module of each part, which has `measure(*, quick)`."""
