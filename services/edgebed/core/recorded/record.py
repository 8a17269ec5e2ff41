"""What every record of the journal is made of: its base, and the bounds of what its fields may hold."""

from typing import Annotated

import msgspec

from edgebed.core.units import LARGEST, SEED_MAX

Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
CountOrNone = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]
"""A count, or -1: none, or not reported."""
Lag = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Every = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
"""Steps in a row that a line stands for."""
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
Loss = Annotated[float, msgspec.Meta(description="of any size, and NaN where it was not finite")]
Seed = Annotated[int, msgspec.Meta(ge=0, le=SEED_MAX)]


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=str.lower, omit_defaults=True):
    """The base of all records; `kind` on the line is the class's name in lower case."""
