"""Links: what a node's link to the data network may be asked to do, declared once, and the part of a plan that asks it.

A property of a link is a field of the structs here and a line of `PROPERTIES`, with its reader, its words, its place in
the kernel's netem, and whether the transport's own model makes it. Readers of scenarios, the kernel's side, records,
reports and exports go through that table.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from edgebed.core import units
from edgebed.core.bounds import Amount, PositiveAmount, PositiveCount, Share

RATE_MIN_BIT_S = 8_000  # a packet of 1,514 bytes takes a second and a half
RATE_MAX_BIT_S = 10 * 10**9
LATENCY_MAX_S = 60.0


class Impairments(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to packets in each direction of a link, beside its rates."""

    latency_s: Amount = 0.0
    """Latency one way, in each direction."""
    jitter_s: Amount = 0.0
    """Latency is drawn evenly from latency - jitter to latency + jitter."""
    loss: Share = 0.0
    """Share of the packets that are lost, in each direction, from 0 to 1."""


class LinkValues(Impairments, frozen=True, kw_only=True):
    """What a link is at a moment. A rate of None: as fast as the machine."""

    uplink_bit_s: PositiveCount | None = None
    """Rate at which the node may send."""
    downlink_bit_s: PositiveCount | None = None
    """Rate at which the node may receive."""


class LinkChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a link changes to at a time; None: stays as it is."""

    at_s: Amount = 0.0
    """Time since training began; in a link that repeats, since the beginning of the period. A fault's change is at
    once."""
    uplink_bit_s: PositiveCount | None = None
    downlink_bit_s: PositiveCount | None = None
    latency_s: Amount | None = None
    jitter_s: Amount | None = None
    loss: Share | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that change, with their values."""
        return {field: value for field, value in values_of(self).items() if value is not None}

    def asks(self, kind: "Kind") -> bool:
        """Whether a property of this kind changes to anything but nothing."""
        return bool(asked(kind, self))


class LinkPlan(LinkValues, frozen=True, kw_only=True):
    """A node's link to the data network: what it may carry, and how that changes during training.

    Rates count what is on the wire, headers and acknowledgements included.
    """

    changes: tuple[LinkChange, ...] = ()
    """Changes in the order of their times."""
    period_s: PositiveAmount | None = None
    """Time after which the changes are repeated; None: they happen once."""
    offset_s: Amount = 0.0
    """Place in the period at which training begins."""

    @property
    def shaped(self) -> bool:
        """Whether the link is anything but as fast as the machine."""
        return self != LinkPlan()

    @property
    def lossy(self) -> bool:
        """Whether the link ever does something to single packets, as losing them: what is counted at its ends differs.

        It is the kernel's netem alone that can.
        """
        return self.asks("packets")

    @property
    def delayed(self) -> bool:
        """Whether the link ever has latency or jitter."""
        return self.asks("delay")

    @property
    def limited(self) -> bool:
        """Whether a rate of the link is ever limited."""
        return self.asks("rate")

    def asks(self, kind: "Kind") -> bool:
        """Whether the link ever has a property of this kind."""
        return any(getattr(moment, field) for field in FIELDS[kind] for moment in (self, *self.changes))


def check_rate(rate_bit_s: int) -> int:
    """Return a rate that a link can have; ValueError if it is none."""
    if not RATE_MIN_BIT_S <= rate_bit_s <= RATE_MAX_BIT_S:
        least, most = units.format_rate(RATE_MIN_BIT_S), units.format_rate(RATE_MAX_BIT_S)
        raise ValueError(f"{units.format_rate(rate_bit_s)} is no rate of a link; from {least} to {most}")
    return rate_bit_s


def read_rate(given: object) -> int:
    """Read the rate that a link may carry, in bit/s."""
    return check_rate(units.parse_rate(given))


def read_latency(given: object) -> float:
    """Read the delay of a link, in seconds."""
    latency_s = units.parse_duration(given)
    if latency_s > LATENCY_MAX_S:
        raise ValueError(f"{given} is above {units.format_duration(LATENCY_MAX_S)}")
    return latency_s


def read_share(given: object) -> float:
    """Read a share of packets, below 1."""
    share = units.parse_percentage(given)
    if share == 1.0:
        raise ValueError("a link that loses all packets carries nothing; below 100%")
    return share


Kind = Literal["rate", "delay", "packets"]
"""Kinds of properties: how fast bytes leave, how late they come, and what becomes of single packets. The transport's
own model of a link makes the first two; the third is the kernel's netem's alone."""


class Property(NamedTuple):
    """A property of a link."""

    key: str
    """Key of a scenario, option of `edgebed link set`, word in the journal and in reports."""
    field: str
    kind: Kind
    words: str
    """Column of an export."""
    netem: str = ""
    """Name in the kernel's `tc_netem_qopt`, which takes both directions alike; empty: it is a queue's rate."""

    def read(self, given: object) -> Any:
        """Read a value from what a user gives; ValueError says what is allowed."""
        return {"rate": read_rate, "delay": read_latency, "packets": read_share}[self.kind](given)

    def text(self, value: Any) -> str:
        """Write a value as a scenario has it."""
        write: dict[Kind, Callable[[Any], str]] = {
            "rate": units.format_rate, "delay": units.format_duration, "packets": units.format_percentage,
        }  # fmt: skip
        return write[self.kind](value)

    def seen_text(self, value: float) -> str:
        """Write a value that the kernel holds, which need not be round."""
        return f"{1000 * value:g} ms" if self.kind == "delay" else f"{100 * value:g} %"


PROPERTIES = {
    each.key: each
    for each in (
        Property("uplink", "uplink_bit_s", "rate", "Rate at which the node may send."),
        Property("downlink", "downlink_bit_s", "rate", "Rate at which the node may receive."),
        Property("latency", "latency_s", "delay", "Latency as asked at the beginning.", "delay"),
        Property("jitter", "jitter_s", "delay", "Variation of the latency, as asked.", "jitter"),
        Property("loss", "loss", "packets", "Share of the packets, 0 to 1.", "loss"),
    )
}
IMPAIRMENTS = tuple(each for each in PROPERTIES.values() if each.netem)
"""Properties that the kernel's netem makes, in both directions alike."""


FIELDS = {kind: tuple(each.field for each in PROPERTIES.values() if each.kind == kind) for kind in get_args(Kind)}
"""Fields by the kind of their properties."""


def asked(kind: Kind, *moments: LinkValues | LinkChange) -> list[str]:
    """Return the keys of the properties of this kind that a link has at one of these moments."""
    found = (each for each in PROPERTIES.values() if each.kind == kind)
    return [each.key for each in found if any(getattr(moment, each.field) for moment in moments)]


def values_of(link: LinkValues | LinkChange) -> dict[str, Any]:
    """Return all properties, by field."""
    return {each.field: getattr(link, each.field) for each in PROPERTIES.values()}


def impairments_of(link: Impairments) -> dict[str, Any]:
    """Return what happens to packets, by field."""
    return {each.field: getattr(link, each.field) for each in IMPAIRMENTS}


def is_impaired(link: Impairments) -> bool:
    """Whether anything happens to packets beside their rates."""
    return any(impairments_of(link).values())


def impairments_text(link: Impairments) -> str:
    """What happens to packets in few words, e.g. `40ms±5ms loss 1%`; empty: nothing."""
    latency, jitter, *others = IMPAIRMENTS
    delay = latency.text(link.latency_s) if link.latency_s or link.jitter_s else ""
    delay += f"±{jitter.text(link.jitter_s)}" if link.jitter_s else ""
    rest = (f"{each.key} {each.text(getattr(link, each.field))}" for each in others if getattr(link, each.field))
    return " ".join(filter(None, (delay, *rest)))


def change_text(change: LinkChange) -> str:
    """Write a change as the journal has it, e.g. `uplink 1mbit, loss 1%`."""
    values = ((each, getattr(change, each.field)) for each in PROPERTIES.values())
    return ", ".join(f"{each.key} {each.text(value)}" for each, value in values if value is not None)


def change_of(text: str) -> LinkChange:
    """Read a change that `change_text` has written; ValueError where it is none."""
    told = (part.split(" ", 1) for part in text.split(", "))
    try:
        return LinkChange(**{PROPERTIES[key].field: PROPERTIES[key].read(value) for key, value in told})
    except KeyError as error:
        raise ValueError(f"{text!r} is no change of a link: {error} is no property") from error
