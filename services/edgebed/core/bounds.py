"""Bounds of what plans and records hold, as types of their fields: what is read can be reckoned with."""

from typing import Annotated

import msgspec

from edgebed.core.units import LARGEST, SEED_MAX

Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
PositiveCount = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Amount = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
PositiveAmount = Annotated[float, msgspec.Meta(gt=0.0, le=LARGEST)]
Seconds = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
"""A moment, which may be before training began; a time that something takes is an `Amount`."""
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=SEED_MAX)]
