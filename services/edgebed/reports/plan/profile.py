"""A profile in words, for its file's head and a terminal."""

from collections.abc import Iterator, Sequence

from edgebed.core.host import machine
from edgebed.core.plan import Method, Task
from edgebed.core.quantities import bytes_text, ms_text
from edgebed.reports.writing.page import Grid, Paragraph, Part, Section
from edgebed.scenario.profiles import LayerRow, Profile

TIMES = ("forward", "backward", "step")
BESIDE = {"predict": "predicts", "teach": "is taught", "head": "head", "guess": "guesses", "teach_guess": "is taught"}


def remarks(task: Task, methods: Sequence[Method]) -> Iterator[str]:
    """Sentences on where a profile's numbers come from."""
    here = machine()
    sizes = "".join(f", {name} {size}" for name, size in task.sizes)
    names = ", ".join(dict.fromkeys(method.name for method in methods))
    yield "What layers take, measured by edgebed profile: CPU time of one thread, a mini-batch at a time."
    yield f"{task.model}{sizes}; {names}; {methods[0].parts['optimizer'].name}"
    yield f"on {here.get('cpu', 'an unknown processor')}"


def parts_of(profile: Profile, counted_s: Sequence[float]) -> list[Part]:
    """A profile for a terminal: a table of layers, then what lies beside them, then messages.

    `counted_s`: by operations, seconds of a gradient that pass in each layer; their sum may be any.
    """
    head = ("layer", "weights", "outputs", *TIMES, "of gradient", "counted", "keeps", "memory")
    measured = _shares([row.forward + row.backward for row in profile.layers])
    shares = zip(measured, _shares(counted_s), strict=True)
    rows = [_cells(k, row, of) for k, (row, of) in enumerate(zip(profile.layers, shares, strict=True))]
    parts: list[Part] = [Grid(head, rows)]
    for beside in profile.beside:
        kinds = [kind for kind in BESIDE if any(getattr(row, kind) for row in beside.layers)]
        cells = [
            (str(k), *(ms_text(getattr(row, kind)) for kind in kinds), bytes_text(row.memory + row.guess_memory))
            for k, row in enumerate(beside.layers)
        ]
        grid = Grid(("layer", *(BESIDE[kind] for kind in kinds), "memory"), cells)
        parts.append(Section(f"Beside, with {beside.learning['name']}:", [grid]))
    total_s = sum(row.forward + row.backward + row.step for row in profile.layers)
    own = f"A live shard needs {ms_text(profile.own)} of each step whatever layers it has." if profile.own else ""
    return [*parts, *map(Paragraph, (
        *(
            f"A message with exchange {each.exchange['name']} takes {ms_text(each.each)}, and for each MiB of values "
            f"{ms_text(each.encode + each.carry)}."
            for each in profile.messages
        ),
        own,
        f"A step of the whole model takes {ms_text(total_s)} with mini-batches of {profile.batch_size}.",
    ))]  # fmt: skip


def _shares(parts: Sequence[float]) -> list[str]:
    whole = sum(parts) or 1.0
    return [f"{100 * part / whole:.1f} %" for part in parts]


def _cells(k: int, row: LayerRow, shares: tuple[str, str]) -> tuple[str, ...]:
    times = (ms_text(getattr(row, kind)) for kind in TIMES)
    sizes = f"{row.weights:,}", f"{row.outputs:,}"
    return (str(k), *sizes, *times, *shares, bytes_text(row.kept), bytes_text(row.memory))
