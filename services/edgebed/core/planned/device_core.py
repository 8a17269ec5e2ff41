"""How fast a core of a device is, as virtual time knows it."""

import msgspec

from edgebed.core.bounds import Amount, PositiveAmount

OVERHEAD_FLOP = 10**7
"""Operations for which a core has the time that a gradient takes whatever its batch, where that was not measured: a
slower core is slower at everything. 0.2 ms at the 50 GFLOP/s at which the smallest model was measured to take that."""


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """A core of a device, as virtual time knows it."""

    flop_s: PositiveAmount
    """Floating-point operations a second, at float32."""
    overhead_s: Amount
    """Time of a gradient whatever its batch."""
    device: str = ""
    """The device's profile; empty: the scenario says the speed itself."""

    @classmethod
    def of_speed(cls, flop_s: float, device: str = "", overhead_s: float | None = None) -> "Core":
        """A core with that speed; None: what a gradient takes whatever its batch follows from it."""
        return cls(
            flop_s=flop_s, overhead_s=OVERHEAD_FLOP / flop_s if overhead_s is None else overhead_s, device=device
        )

    def gradient_s(self, flop: int) -> float:
        """Seconds of a gradient with so many operations."""
        return self.overhead_s + flop / self.flop_s


REFERENCE = Core.of_speed(1e10)
"""The core of a class that says neither speed nor device: 10 GFLOP/s, a number to reckon with and of no device."""
