"""Settings that are shares, above 0 and at most 1, and what to say of one that is not."""


def check_share(name: str, share: float) -> None:
    """Raise ValueError unless `share`, the setting called `name`, is in (0, 1]."""
    if not 0.0 < share <= 1.0:
        raise ValueError(f"{name}: {share:g} is not above 0 and at most 1{percent_hint(share)}")


def percent_hint(given: float) -> str:
    """Say how to write a number that was probably meant as a percentage; empty for others."""
    return f" ({given:g} % is {given / 100:g})" if 1 < given <= 100 else ""
