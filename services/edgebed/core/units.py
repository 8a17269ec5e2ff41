"""Quantities as people write them: `1m30s`, `512MiB`, `10mbit`, `0.5%`.

One meaning per spelling, and no guesses: a bare number is refused, and so is a unit that two tools read in two ways.
`512M` is mega or mebi, depending on whom one asks; `10mbps` is ten megabytes a second to tc and ten megabits to people.

Parsing and formatting are inverse: `parse(format(x)) == x` for every x. Numbers are decimal and exact until the end, so
0.1 s is the float nearest to a tenth. Used by the schema, by expectations and by tables; imports nothing of edgebed.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

LARGEST = 2**53
"""The largest number that a scenario or a record may have, of anything but seeds. Up to here whole numbers are exact in
JSON, and so many of them fit a column of 64 bits when they are added up."""
SEED_MAX = 2**63 - 1
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
DURATIONS_S = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6")}
MEMORY_BYTES = {
    "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1,
}  # fmt: skip
RATES_BIT_S = {
    "gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "gibit": 1 << 30, "mibit": 1 << 20, "kibit": 1 << 10, "bit": 1,
}  # fmt: skip

SPEEDS_FLOP_S = {"TFLOP/s": 10**12, "GFLOP/s": 10**9, "MFLOP/s": 10**6, "FLOP/s": 1}

DURATION_PATTERN = "^(?=.)" + "".join(f"({NUMBER}{unit})?" for unit in DURATIONS_S) + "$"
MEMORY_PATTERN = f"^{NUMBER}({'|'.join(MEMORY_BYTES)})$"
RATE_PATTERN = f"^{NUMBER}({'|'.join(RATES_BIT_S)})$"
PERCENTAGE_PATTERN = f"^{NUMBER}%$"
SPEED_PATTERN = f"^{NUMBER} ?({'|'.join(SPEEDS_FLOP_S)})$"

DURATION_FORM = "a number with h, m, s, ms or us, e.g. 1m30s or 500ms"
MEMORY_FORM = "a number with GiB, MiB, KiB, GB, MB, KB or B, e.g. 512MiB"
RATE_FORM = "a number with gbit, mbit, kbit, gibit, mibit, kibit or bit (per second), e.g. 10mbit"
SPEED_FORM = "a number with TFLOP/s, GFLOP/s, MFLOP/s or FLOP/s, e.g. 4 GFLOP/s"
PERCENTAGE_FORM = "a number from 0 to 100 with its sign, e.g. 0.5%"


class QuantityError(ValueError):
    """A text that is no quantity."""

    def __init__(self, message: str, meant: str = "") -> None:
        """`meant` is what was probably meant, as it is to be written; empty where nobody can tell."""
        self.meant = meant
        super().__init__(message)


class _Advice(NamedTuple):
    """What to do about a quantity that cannot be read, and what was probably meant."""

    text: str
    meant: str = ""


_Hint = Callable[[object], _Advice | None]
"""What was written -> advice, where there is any."""


def _meant(text: str, remark: str = "") -> _Advice:
    return _Advice(f"did you mean {text}?{remark}", text)


def parse_duration(text: object) -> float:
    """Seconds; `1m30s` is 90.0. Units from large to small, each at most once. ValueError with a hint otherwise."""
    if isinstance(text, str) and re.fullmatch(DURATION_PATTERN, text):
        parts = re.findall(rf"({NUMBER})(us|ms|[hms])", text)
        duration_s = float(sum((Decimal(number) * DURATIONS_S[unit] for number, unit in parts), Decimal()))
        if duration_s <= LARGEST:
            return duration_s
        raise ValueError(f"a duration is at most {LARGEST:,}s")
    raise _refusal("a duration", text, DURATION_FORM, _duration_hint)


def parse_memory(text: object) -> int:
    """Bytes; `1KiB` is 1024, `1KB` is 1000. ValueError with a hint otherwise."""
    return _parse_whole("a memory size", text, MEMORY_BYTES, "bytes", MEMORY_FORM, _memory_hint)


def parse_rate(text: object) -> int:
    """Bits per second; `10mbit` is 10,000,000. ValueError with a hint otherwise."""
    return _parse_whole("a rate", text, RATES_BIT_S, "bit/s", RATE_FORM, _rate_hint)


def parse_speed(text: object) -> int:
    """Floating-point operations a second; `4 GFLOP/s` is 4,000,000,000. ValueError with a hint otherwise."""
    joined = text.replace(" ", "", 1) if isinstance(text, str) and re.fullmatch(SPEED_PATTERN, text) else text
    return _parse_whole("a speed", joined, SPEEDS_FLOP_S, "operations a second", SPEED_FORM, _speed_hint)


def parse_percentage(text: object) -> float:
    """A share from 0 to 1; `1%` is 0.01. ValueError with a hint otherwise."""
    if isinstance(text, str) and re.fullmatch(PERCENTAGE_PATTERN, text):
        share = float(Decimal(text[:-1]).scaleb(-2))
        if share <= 1.0:
            return share
    raise _refusal("a percentage", text, PERCENTAGE_FORM, _percentage_hint)


def format_duration(duration_s: float) -> str:
    """Seconds, at least 0, in the shortest common form: 0.005 -> `5ms`, 90.0 -> `1m30s`, 0.0 -> `0s`."""
    seconds = Decimal(repr(float(duration_s)))
    if not seconds.is_finite() or seconds < 0:
        raise ValueError(f"{duration_s} is not a duration")
    if 0 < seconds < 1:
        unit = "ms" if seconds >= DURATIONS_S["ms"] else "us"
        return _plain(seconds / DURATIONS_S[unit]) + unit
    text = ""
    # a fraction is easier to read as 90.5s than as 1m30.5s, and so is a number of seconds beyond any use
    if seconds < 10**9 and seconds == seconds.to_integral_value():
        for unit in ("h", "m"):
            count, seconds = divmod(seconds, DURATIONS_S[unit])
            text += f"{_plain(count)}{unit}" if count else ""
    return text + f"{_plain(seconds)}s" if seconds or not text else text


def format_memory(memory_bytes: int) -> str:
    """Bytes in the largest unit that divides them: 536870912 -> `512MiB`, 1001 -> `1001B`."""
    return _format_whole(memory_bytes, MEMORY_BYTES)


def format_rate(rate_bit_s: int) -> str:
    """Bits per second in the largest unit that divides them: 10000000 -> `10mbit`."""
    return _format_whole(rate_bit_s, RATES_BIT_S)


def format_speed(flop_s: int) -> str:
    """Operations a second, from 0, in the largest unit of which there is one: 35900000000 -> `35.9 GFLOP/s`."""
    unit = next((unit for unit, factor in SPEEDS_FLOP_S.items() if flop_s >= factor), "FLOP/s")
    return f"{_plain(Decimal(flop_s) / SPEEDS_FLOP_S[unit])} {unit}"


def format_percentage(share: float) -> str:
    """A share from 0 to 1 with all its digits: 0.005 -> `0.5%`."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"{share} is not a share")
    return f"{_plain(Decimal(repr(float(share))).scaleb(2))}%"


def _parse_whole(what: str, text: object, units: Mapping[str, int], base: str, form: str, hint: _Hint) -> int:
    match = re.fullmatch(rf"({NUMBER})({'|'.join(units)})", text) if isinstance(text, str) else None
    if match is None:
        raise _refusal(what, text, form, hint)
    amount = Decimal(match[1]) * units[match[2]]
    if amount != amount.to_integral_value():
        raise ValueError(f"not a whole number of {base}: '{text}'")
    if amount > LARGEST:
        raise ValueError(f"{what} is at most {LARGEST:,} {base}")
    return int(amount)


def _format_whole(amount: int, units: Mapping[str, int]) -> str:
    if amount < 0:
        raise ValueError(f"{amount} is below 0")
    divisors = [unit for unit in units if amount and amount % units[unit] == 0]
    unit = max(divisors, key=lambda unit: units[unit], default=list(units)[-1])
    return f"{amount // units[unit]}{unit}"


def _plain(number: Decimal) -> str:
    """Digits without exponent or trailing zeros, as the patterns above want them."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _refusal(what: str, text: object, form: str, hint: _Hint) -> QuantityError:
    written = str(text).strip()
    if re.match(r"-\s*[0-9]", written):
        advice: _Advice | None = _Advice("it must not be negative")
    elif re.match(r"[0-9]+,(?![0-9]{3}(?![0-9]))[0-9]", written):  # but 1,000 may be a thousand or one
        with_point = written.replace(",", ".", 1)
        advice = hint(with_point) or _meant(with_point)
    else:
        advice = hint(text)
    advice = advice or _Advice("")
    return QuantityError(f"not {what}: {text!r} ({form}{'; ' if advice.text else ''}{advice.text})", advice.meant)


def _number(text: object) -> str:
    """The number if `text` is one without a unit, else nothing."""
    return str(text) if re.fullmatch(NUMBER, str(text)) and not isinstance(text, bool) else ""


_WORDS_S = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
    "hr": "h", "hour": "h", "hours": "h", "msec": "ms", "millis": "ms", "µs": "us", "usec": "us",
}  # fmt: skip


def _duration_hint(text: object) -> _Advice | None:
    if number := _number(text):
        return _Advice(f"the unit is missing: write {number}s for seconds or {number}ms for milliseconds")
    match = re.fullmatch(rf"({NUMBER})\s*([a-zµ]+)", str(text).strip().lower())
    if match is None:
        return None
    unit = _WORDS_S.get(match[2], match[2])
    if unit == "d":
        return _Advice(f"write days as hours: {_plain(Decimal(match[1]) * 24)}h")
    return _meant(f"{match[1]}{unit}") if unit in DURATIONS_S else None


def _memory_hint(text: object) -> _Advice | None:
    if number := _number(text):
        return _Advice(f"the unit is missing: write {number}MiB or {number}B")
    match = re.fullmatch(rf"({NUMBER})\s*([kmg])(i?)(b?)", str(text).strip().lower())
    if match is None:
        return None
    prefix = match[2].upper()
    if match[4]:
        return _meant(f"{match[1]}{prefix}{match[3]}B")
    return _meant(f"{match[1]}{prefix}iB", f" A bare {prefix} is 1024-based to some tools and 1000-based to others")


def _rate_hint(text: object) -> _Advice | None:
    written = str(text).strip()
    if written.lower() in ("unlimited", "none", "no", "off", "inf", "infinity", "infinite"):
        return _Advice("leave the key out for no limit; in a step, which cannot lift a limit, write 10gbit")
    if re.fullmatch(rf"{NUMBER}(?:[eE]\+?[0-9]{{1,2}})?", written) and not isinstance(text, bool):
        bits = Decimal(written)
        if 10**4 <= bits <= 10**12 and bits == bits.to_integral_value():
            return _Advice(f"the unit is missing: if bits a second are meant, write {format_rate(int(bits))}")
        return _Advice(f"the unit is missing: write {written}mbit or {written}kbit")
    match = re.fullmatch(rf"({NUMBER})\s*(([kKmMgG]?)(i?)(\w+(?:/s(?:ec)?)?|))", written)
    if match is None:
        return None
    number, spelled, prefix, binary, unit = match[1], match[2], match[3].lower(), match[4], match[5]
    bits_text, octets_text = (f"{_plain(times * Decimal(number))}{prefix}{binary}bit" for times in (1, 8))
    if unit in ("B", "Bps", "B/s"):
        return _meant(octets_text, f" A B is a byte of 8 bits; if bits are meant, write {bits_text}")
    if unit.lower() == "bps":
        return _meant(bits_text, f" {spelled} is ambiguous (tc: bytes, others: bits)")
    if unit.lower().removesuffix("/sec").removesuffix("/s") in ("b", "bit", "bits") or (prefix and not unit):
        return _meant(bits_text)
    return None


def _speed_hint(text: object) -> _Advice | None:
    if number := _number(text):
        return _Advice(f"the unit is missing: write {number} GFLOP/s for thousand millions of operations a second")
    match = re.fullmatch(rf"({NUMBER})\s*([TGM]?)FLOP(?:S|/S|PS)?", str(text).strip().upper())
    return _meant(f"{match[1]} {match[2]}FLOP/s") if match else None


def _percentage_hint(text: object) -> _Advice | None:
    if number := _number(text):
        share = Decimal(number)
        of_a_share = f", or {_plain(share.scaleb(2))}% for a share of {number}" if 0 < share < 1 else ""
        return _Advice(f"the sign is missing: write {number}% for {number} in a hundred{of_a_share}")
    match = re.fullmatch(rf"({NUMBER})\s*(%|percent|pct)", str(text).strip().lower())
    return _meant(f"{match[1]}%") if match and match[1] + "%" != text else None
