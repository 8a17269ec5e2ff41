"""The kinds of drawings of scenarios, by name; light, since the command line reads it."""

from typing import Literal, get_args

Drawing = Literal["usual", "edges"]
"""What scenarios are drawn: usual ones (drawing.py), or such where virtual time has most to get wrong (edges.py)."""
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)
