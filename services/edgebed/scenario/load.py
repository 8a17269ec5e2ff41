"""A scenario file, or a dict, with the `--set` options -> a checked `Scenario`.

Order: each variant is laid over the scenario, over that the options for all trials, then those for one variant; every
trial so made is checked as a whole. All mistakes are reported at once, each where it was written: a variant's in the
variant, an option's at the option, and what all variants share once.
"""

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from edgebed.core.errors import NOWHERE, Choice, LocatedProblem, Location, Place, ScenarioError
from edgebed.core.imports import own_folders
from edgebed.scenario import overrides, source, sweep_section
from edgebed.scenario.hosts import FILE, HostSection, host_problems
from edgebed.scenario.methods import PYTHON_PATH
from edgebed.scenario.mistakes.contradictions import Contradiction, contradictions, program_contradictions
from edgebed.scenario.mistakes.problems import Problem, choose, not_a, problems_of
from edgebed.scenario.names import HostName, check_name
from edgebed.scenario.overrides import Option
from edgebed.scenario.programs.trial import KIND, ProgramTrial
from edgebed.scenario.schema import AnyTrial, Header, Scenario, TrialSection
from edgebed.scenario.section import FOLDER
from edgebed.scenario.shipped import scenario_file
from edgebed.scenario.source import SourceNode
from edgebed.scenario.sweep_section import SweepSection

HEADER_KEYS = tuple(Header.model_fields)
TRIAL_KEYS = tuple(TrialSection.model_fields | ProgramTrial.model_fields)
SWEEP, HOSTS = "sweep", "hosts"
KEYS = (*HEADER_KEYS, *TRIAL_KEYS, "variants", SWEEP)


_HOSTS = TypeAdapter(dict[HostName, HostSection])


@dataclass
class _Document:
    """A scenario file taken apart, while it is being checked."""

    header: SourceNode
    base: SourceNode
    sweep: SourceNode | None = None
    variants: dict[str, SourceNode] = field(default_factory=dict)
    options: list[Option] = field(default_factory=list)
    findings: dict[LocatedProblem, set[str]] = field(default_factory=dict)
    """Mistakes, each with the trials it is in."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Warnings by trial: what is no mistake of the file, and cannot be done."""

    def find(
        self,
        node: SourceNode,
        message: str,
        trial: str = "",
        *,
        at_key: bool = False,
        rest: Sequence[str] = (),
        choice: Choice | None = None,
    ) -> None:
        """Note a mistake at `node`, or in what is missing below it at `rest`."""
        where = Location(node.key_place if at_key else node.place, (*node.path, *rest))
        finding = where.problem(message, choice)
        self.findings.setdefault(finding, set()).add(trial)

    def find_all(self, tree: SourceNode, problems: Iterable[Problem], trial: str = "") -> None:
        """Note mistakes whose paths begin at `tree`."""
        for problem in problems:
            node, rest = tree.descend(problem.path)
            at_key = problem.at_key or bool(rest)
            self.find(node, problem.message, trial, at_key=at_key, rest=rest, choice=problem.choice)


def load_scenario(
    path: str | Path | Mapping[str, Any],
    sets: Sequence[str] = (),
    *,
    hosts: str | Path | None = None,
    resolved_from: str | None = None,
) -> Scenario:
    """Load the scenario in the file `path`, or by that name, or given as a dict, with `a.b.c=value` overrides.

    Its hosts are those of the file `hosts`; else its own; else those in hosts.yaml beside it, if there is one.
    `resolved_from`: it is what `resolved_yaml` wrote of one that was loaded from that file before, or from a dict if
    empty; what options made impossible then stands in it like all else, and is not refused, and modules of one's own
    are looked for where that file is. ScenarioError with everything that is wrong, one message each:
    `file:line:col: path: what (what is allowed)`.
    """
    if isinstance(path, Mapping):
        name, root, folder = "", source.from_plain(path, Place("")), Path()
    else:
        file = scenario_file(path)
        name, root, folder = str(file), source.read_file(file), file.parent
    origin = str(name if resolved_from is None else resolved_from)
    context = {FOLDER: folder, PYTHON_PATH: own_folders(Path(origin).absolute().parent if origin else Path.cwd())}
    document = _take_apart(_with_hosts(root, hosts, folder if name else None))
    _apply_sets(document, sets)
    header = _check_header(document)
    trials: dict[str, AnyTrial] = {}
    places: dict[str, dict[str, Location]] = {}
    trees = _trees(document)
    _one_kind(document, trees)
    for variant, tree in trees.items():
        trial = _check_trial(document, tree, variant, context)
        if trial is not None:
            key = variant or trial.default_name
            trials[key] = trial
            places[key] = _places(tree)
            if header is not None and resolved_from is None:
                for each in _contradictions(trial, header.seed):
                    _contradict(document, tree, each, variant, key)
    sweep = _check_sweep(document, trees, trials, context)
    if document.findings or header is None:
        raise ScenarioError(*_in_order(document))
    return Scenario(
        **header.model_dump(), trials=trials, sweep=sweep, source=name, places=places, warnings=document.warnings
    )


def _with_hosts(root: SourceNode, file: str | Path | None, folder: Path | None) -> SourceNode:
    """Return the scenario with the hosts of a file, the one that is named or the one beside it in `folder`.

    Folders of certificates are relative to where they are written.
    """
    hosts, base = root.value.get(HOSTS), folder or Path.cwd()
    if file is not None or (hosts is None and folder is not None and (folder / FILE).is_file()):
        place = Path(file or base / FILE)
        hosts, base = (
            source.read_file(place, "a list of hosts", "host-a: { engine: local }", above=(HOSTS,)),
            place.parent,
        )
    if hosts is None:
        return root
    found = {name: _with_certificates(host, base) for name, host in hosts.items()}
    hosts = hosts._replace(value=found if isinstance(hosts.value, dict) else hosts.value)
    return root._replace(value={**root.value, HOSTS: hosts})


def _with_certificates(host: SourceNode, base: Path) -> SourceNode:
    """Return a host with the whole path of its certificates."""
    tls = host.value.get("tls") if isinstance(host.value, dict) else None
    if tls is None or not isinstance(tls.value, str) or not tls.value:
        return host
    path = str((base / Path(tls.value).expanduser()).absolute())
    return host._replace(value={**host.value, "tls": tls._replace(value=path)})


def load_hosts(path: Path) -> dict[str, HostSection]:
    """Load a file of hosts without a scenario; ScenarioError with everything that is wrong."""
    tree = _with_hosts(SourceNode({}, Place(""), (), Place("")), path, None).value[HOSTS]
    try:
        hosts = _HOSTS.validate_python(tree.plain())
        problems = list(host_problems(hosts))
    except ValidationError as error:
        problems = list(problems_of(error))
    if problems:
        document = _Document(tree, tree)
        document.find_all(tree, problems)
        raise ScenarioError(*_in_order(document))
    return hosts


def resolved_yaml(scenario: Scenario) -> str:
    """Write the scenario with every default, variant and override filled in; loading it gives the same trials."""
    header = scenario.model_dump(mode="json", include=set(HEADER_KEYS))
    trials = {name: trial.model_dump(mode="json", exclude_none=True) for name, trial in scenario.trials.items()}
    ((first, only), *others) = trials.items()
    alone = not others and first == scenario.trials[first].default_name
    text = source.yaml_text(header | (only if alone else {"variants": trials}))
    return f"# '{scenario.name}' as resolved: every default, variant and option filled in.\n{text}"


def written_trial(path: Path, sets: Sequence[str], variant: str) -> dict[str, Any]:
    """Return a trial of a scenario that can be loaded, as written: variant and options laid over, no default filled in.

    With its seed, and without what is expected of it.
    """
    document = _take_apart(source.read_file(scenario_file(path)))
    _apply_sets(document, sets)
    trees = _trees(document)
    tree = trees.get(variant, trees.get("", document.base)).plain()
    header = document.header.plain()
    seed = {"seed": header["seed"]} if "seed" in header else {}
    return seed | {key: value for key, value in tree.items() if key != "expect"}


def _take_apart(root: SourceNode) -> _Document:
    document = _Document(
        header=root._replace(value={key: node for key, node in root.items() if key in HEADER_KEYS}),
        base=root._replace(value={key: node for key, node in root.items() if key in TRIAL_KEYS}),
        sweep=root.value.get(SWEEP),
    )
    for key, node in root.items():
        if key not in KEYS:
            choice = choose(key, KEYS)
            document.find(node, f"unknown key; {choice}", at_key=True, choice=choice)
    variants = root.value.get("variants")
    if variants is not None and variants.value is not None:
        document.variants = _named_overlays(document, variants)
    return document


def _named_overlays(document: _Document, variants: SourceNode) -> dict[str, SourceNode]:
    """Return the variants that can be used; note what is wrong with the others."""
    overlays = {}
    if not isinstance(variants.value, dict):
        document.find(variants, f"{not_a('mapping', variants.plain())}; variants have names")
    for name, overlay in variants.items():
        try:
            check_name(name)
        except ValueError as error:
            document.find(overlay, str(error), at_key=True)
        if overlay.value is None:
            overlay = overlay._replace(value={})  # noqa: PLW2901 - `asgd:` alone is a variant that changes nothing
        if not isinstance(overlay.value, dict):
            document.find(overlay, f"{not_a('mapping', overlay.plain())}; a variant changes {', '.join(TRIAL_KEYS)}")
            continue
        for key, node in overlay.items():
            if key not in TRIAL_KEYS:
                choice = None if key in KEYS else choose(key, TRIAL_KEYS)
                message = f"unknown key; {choice}" if choice else "a variant cannot change it"
                document.find(node, message, at_key=True, choice=choice)
        overlays[name] = overlay._replace(value={key: node for key, node in overlay.items() if key in TRIAL_KEYS})
    return overlays


def _apply_sets(document: _Document, sets: Sequence[str]) -> None:
    """Put each option where it belongs: the header, the variants, or (later) one trial or all."""
    for option in sets:
        try:
            keys, tree = overrides.parse_set(option)
        except ScenarioError as error:
            document.findings[NOWHERE.problem(str(error))] = {""}
            continue
        leaf, _ = tree.descend(keys)
        if keys[0] not in KEYS:
            choice = choose(keys[0], KEYS)
            document.find(leaf, f"unknown key '{keys[0]}'; {choice}", choice=choice)
        elif keys[0] in HEADER_KEYS:
            document.header = overrides.merge(document.header, tree)
        elif keys[0] == SWEEP:
            document.sweep = None if keys == (SWEEP,) and leaf.value is None else _set_sweep(document.sweep, keys, leaf)
        elif keys[0] != "variants":
            document.options.append(Option(None, keys, tree))
        elif len(keys) <= 2:
            new = tree.value["variants"]
            names = {key for key, node in new.items() if node.value is None}
            kept = {} if len(keys) == 1 else document.variants
            overlays = _named_overlays(document, new._replace(value={k: v for k, v in new.items() if k not in names}))
            document.variants = {key: node for key, node in kept.items() if key not in names} | overlays
        elif keys[2] in TRIAL_KEYS:
            document.options.append(Option(keys[1], keys[2:], tree.descend(keys[:2])[0]))
        else:
            _named_overlays(document, tree.value["variants"])  # says what a variant may change


def _set_sweep(node: SourceNode | None, keys: tuple[str, ...], leaf: SourceNode) -> SourceNode:
    """The section with an option's value in it; the dots behind `sweep.over` are those of an axis."""
    inner = keys[1:] if keys[1:2] != ("over",) or len(keys) == 2 else ("over", ".".join(keys[2:]))
    return overrides.merge(node or sweep_section.empty(leaf.place), overrides.nest(leaf, inner), (SWEEP,))


def _check_header(document: _Document) -> Header | None:
    try:
        return Header.model_validate(document.header.plain())
    except ValidationError as error:
        document.find_all(document.header, problems_of(error))
        return None


def _trees(document: _Document) -> dict[str, SourceNode]:
    """Return what to check for each variant; a scenario without variants has one trial, without a name here."""
    merged = {name: overrides.merge(document.base, overlay) for name, overlay in document.variants.items()}
    merged = merged or {"": document.base}
    for option in sorted(document.options, key=lambda option: option.rank):
        targets = [name for name in merged if option.variant in (None, name)]
        if problem := _problem(option, {name: merged[name] for name in targets}, document.variants):
            document.find(option.leaf, problem)
            continue
        for name in targets:
            if not option.is_within_class or _has(merged[name], option.keys[:2]):
                merged[name] = overrides.merge(merged[name], option.tree)
    return merged


def _problem(option: Option, targets: Mapping[str, SourceNode], variants: Iterable[str]) -> str:
    """Say what is wrong with an option for the trials `targets`, before its value is looked at; empty if nothing is."""
    if not targets:
        return f"there is no variant '{option.variant}'; {choose(option.variant, variants)}"
    if option.is_within_class and not any(_has(trial, option.keys[:2]) for trial in targets.values()):
        name = option.keys[1]
        classes = dict.fromkeys(key for trial in targets.values() for key, _ in trial.descend(["fleet"])[0].items())
        path = ".".join(option.leaf.path[: -len(option.keys) + 2])
        return (
            f"the fleet has no class '{name}'; {choose(name, classes)}. "
            f"A new class is given as a whole: --set {path}={{count: 1}}"
        )
    is_class = option.keys[0] == "fleet" and len(option.keys) == 2
    is_new = is_class and not all(_has(trial, option.keys) for trial in targets.values())
    if option.leaf.value == {} and not is_new and not overrides.is_whole(option.keys):
        return "an empty mapping changes nothing; to take a key away, set it to null"
    return ""


def _has(tree: SourceNode, keys: Sequence[str]) -> bool:
    return not tree.descend(keys)[1]


def _check_trial(document: _Document, tree: SourceNode, variant: str, context: Mapping[str, Any]) -> AnyTrial | None:
    try:
        return _trial(tree, context)
    except ValidationError as error:
        document.find_all(tree, problems_of(error), variant)
        return None


def _one_kind(document: _Document, trees: Mapping[str, SourceNode]) -> None:
    """Note variants of the other kind than the first."""
    kinds = {name: _runs_program(tree) for name, tree in trees.items()}
    (first, is_first), *_ = kinds.items()
    for name in [name for name, kind in kinds.items() if kind != is_first]:
        runs, trains = (first, name) if is_first else (name, first)
        message = f"'{runs}' runs a program, and '{trains}' trains; all variants are of one kind: write two scenarios"
        document.find(document.variants[name], message, at_key=True)


def _runs_program(tree: SourceNode) -> bool:
    node, missing = tree.descend((KIND,))
    return not missing and node.value is not None


def _trial(tree: SourceNode, context: Mapping[str, Any]) -> AnyTrial:
    """What a tree says; modules of one's own are imported for that, and what they print is no result."""
    kind: type[AnyTrial] = ProgramTrial if _runs_program(tree) else TrialSection
    with contextlib.redirect_stdout(sys.stderr):
        return kind.model_validate(tree.plain(), context=context)


def _contradictions(trial: AnyTrial, seed: int) -> Iterable[Contradiction]:
    return program_contradictions(trial, seed) if isinstance(trial, ProgramTrial) else contradictions(trial, seed)


def _contradict(document: _Document, tree: SourceNode, found: Contradiction, variant: str, key: str) -> None:
    """Note what contradicts itself: as a mistake at what is to blame, or as a warning, where an option made it so."""
    nodes = [tree.descend(path)[0] for path in found.paths]
    options = [option for node in nodes for option in node.of_options()]
    options += [
        each.leaf
        for each in document.options
        if each.leaf.value is None and each.variant in (None, variant) and any(map(each.is_within, found.paths))
    ]
    scopes = {node.path[:2] if node.path[:1] == ("variants",) else () for node in nodes}
    together = nodes[0].place.line > 0 and len(scopes) == 1
    if not options and (found.refused == "always" or (found.refused == "written-together" and together)):
        document.find(nodes[0], found.message, variant)
        return
    blamed = (options or nodes)[0]
    document.warnings.setdefault(key, []).append(str(Location(blamed.place, blamed.path).problem(found.message)))


def _check_sweep(
    document: _Document, trees: Mapping[str, SourceNode], trials: Mapping[str, AnyTrial], context: Mapping[str, Any]
) -> SweepSection | None:
    """Return the sweep section; what its axes do to trials is looked at where these are right without."""
    if document.sweep is None:
        return None
    try:
        section = SweepSection.model_validate(document.sweep.plain())
    except ValidationError as error:
        document.find_all(document.sweep, problems_of(error))
        return None
    runs_programs = any(map(_runs_program, trees.values()))
    document.find_all(document.sweep, section.kind_problems(runs_programs=runs_programs))
    if document.findings:
        return section

    def check(tree: SourceNode) -> Iterable[Problem]:
        try:
            _trial(tree, context)
        except ValidationError as error:
            return list(problems_of(error))
        return []

    named = dict(zip(trials, trees.values(), strict=True))
    for mistake in sweep_section.mistakes(document.sweep, section, named, check):
        document.find(mistake.node, mistake.message, mistake.trial, at_key=mistake.at_key)
    for name in section.methods or trials:
        if isinstance(trial := trials.get(name), TrialSection):
            document.find_all(document.sweep, section.level_problems(trial.measures))
        if isinstance(trial, TrialSection) and trial.sharding:
            message = f"variant '{name}' has a layer-wise method, whose shards push nothing that a sweep could count"
            document.find(document.sweep.descend(("methods",))[0], f"{message}; choose others")
    return section


def _in_order(document: _Document) -> list[LocatedProblem]:
    """Return the findings in the order of the file; what is wrong in some variants alone says in which."""
    ordered = []
    for finding in sorted(document.findings, key=lambda finding: finding.location):
        trials = document.findings[finding] - {""}
        if finding.location.path[:1] != ("variants",) and 0 < len(trials) < len(document.variants):
            finding = finding._replace(message=f"{finding.message} (in variant {', '.join(sorted(trials))})")  # noqa: PLW2901 - the same, in more words
        ordered.append(finding)
    return ordered


def _places(tree: SourceNode, keys: tuple[str, ...] = ()) -> dict[str, Location]:
    """Return by path of a key of a trial where it was written."""
    found = {".".join(keys): Location(tree.place, tree.path)} if keys else {}
    children = enumerate(tree.value) if isinstance(tree.value, list) else tree.items()
    for key, child in children:
        found |= _places(child, (*keys, str(key)))
    return found
