"""What every record of the journal is made of: its base, and the bounds of what its fields may hold."""

from typing import Annotated

import msgspec

from edgebed.core.units import LARGEST

CountOrNone = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]
"""A count, or -1: none, or not reported."""
Lag = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Every = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
"""Steps in a row that a line stands for."""
Loss = Annotated[float, msgspec.Meta(description="of any size, and NaN where it was not finite")]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower, omit_defaults=True):
    """The base of all records; `kind` on the line is the class's name in lower case."""
