"""Loading: every mistake at once, each at its line and column; variants, overrides, and the resolved form."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import Waiting
from edgebed.scenario.choices import Interval, Split
from edgebed.scenario.load import load_scenario, resolved_yaml

VARIANTS = """\
variants:
  asgd: { method: asgd }
  adacomp: { method: { compression: { fraction: 0.1 } } }
"""


def test_a_scenario_without_variants_is_one_trial_named_after_its_method(load):
    """All defaults are filled in."""
    scenario = load()

    (trial,) = scenario.trials.values()
    assert (list(scenario.trials), scenario.name, scenario.seed) == (["adacomp"], "small", 3)
    assert (
        trial.fleet["edge"].count,
        trial.fleet["edge"].cpus,
        trial.fleet["edge"].memory,
        trial.fleet["edge"].compute_speed,
    ) == (2, 0.5, 256 * 2**20, 1.0)
    assert (Split("iid"), Interval(updates=200), 60.0) == (
        trial.task.split,
        trial.evaluation.every,
        trial.deadlines.join,
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "s.yaml: the file is empty"),
        (b"# nothing\n", "s.yaml: the file is empty"),
        (b"- 1\n", "s.yaml:1:1: a scenario is a mapping"),
        (b"name: a\nname: b\n", 's.yaml:2:1: not YAML: found duplicate key "name"'),
        (b"name: [1\n", "s.yaml:1:7: not YAML: the [ that begins here is never closed."),
        (b"name: a\nstop: { updates: 1\n", "s.yaml:2:7: not YAML: the { that begins here is never closed."),
        (b"a: { b: 1\nc: 2\n", "s.yaml:2:2: not YAML: expected ',' or '}', but got ':', in the { of 1:4."),
        (b"name: a\n\tseed: 1\n", "s.yaml:2:1: not YAML: the line is indented with a tab; use spaces."),
        (b"name: a\n---\nname: b\n", "s.yaml:2:1: a second document begins here (---); a file holds one."),
        (b"name: a\nseed: \xff\n", "s.yaml:2: not UTF-8 text (byte 0xff); save it as UTF-8"),
        (b"name: a\nseed: \x00\n", "s.yaml:2: not YAML: it holds the control character 0x00"),
        (b"name: !python/name:os.system x\n", "s.yaml:1:7: name: YAML tags"),
        (b"name: " + b"[" * 20_000 + b"]" * 20_000, "s.yaml:1:71: more than 64 lists or mappings in each other"),
        (b"name: a\nstop: " + b"{ a: " * 5_000, "s.yaml:2:327: more than 64 lists or mappings in each other"),
        (b"name:\n  " + b"- " * 5_000 + b"a\n", "s.yaml:2:1: more than 64 lists or mappings in each other"),
        (b"".join(b" " * k + b"a:\n" for k in range(2_000)), "s.yaml: more than 64 lists or mappings in each other"),
    ],
)
def test_a_file_that_is_no_scenario_at_all_is_refused_with_its_line(tmp_path, monkeypatch, content, message):
    """Whatever the file holds, the user reads one sentence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_bytes(content)

    with pytest.raises(ScenarioError) as caught:
        load_scenario("s.yaml")

    assert str(caught.value).startswith(message)


def test_a_missing_file_is_refused_with_the_scenarios_beside_it(scenario_file, good):
    """A typing mistake in the name shows what there is."""
    scenario_file(good)

    with pytest.raises(ScenarioError, match=r"t\.yaml: there is no such file; this folder has s\.yaml\."):
        load_scenario("t.yaml")


def test_scenarios_in_sub_folders_are_listed_too(tmp_path, monkeypatch):
    """After those beside it; no more than can be read at once, and nothing hidden."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "z.yaml",
        "docker-compose.yml",
        "a/b.yaml",
        "a/deep/c.yaml",
        ".git/d.yaml",
        *(f"n/{k}.yml" for k in range(8)),
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    with pytest.raises(ScenarioError) as caught:
        load_scenario("t.yaml")
    assert (
        "; this folder has z.yaml, a/b.yaml, n/0.yml, n/1.yml, n/2.yml, n/3.yml, n/4.yml, n/5.yml and 2 more."
        in str(caught.value)
    )


@pytest.mark.parametrize("container", [True, False])
def test_a_container_says_that_it_sees_one_folder_alone(tmp_path, monkeypatch, container):
    """A file that is there, for who typed the command, is not there for the container."""
    monkeypatch.setenv("EDGEBED_CONTAINER", "1" if container else "")
    with pytest.raises(ScenarioError) as caught:
        load_scenario(tmp_path / "t.yaml")

    assert ("A container sees ./scenarios alone, e.g. SCENARIO=scenarios/" in str(caught.value)) == container


def test_a_folder_is_refused_with_the_scenarios_in_it(scenario_file, good, tmp_path):
    """The next thing to type is in the message."""
    scenario_file(good)

    with pytest.raises(ScenarioError, match=r"this is a folder, not a scenario file; .* has s\.yaml\."):
        load_scenario(tmp_path)


@settings(max_examples=3 * settings.default.max_examples)
@given(data=st.data())
def test_any_damage_to_a_scenario_gives_a_scenario_or_a_scenario_error(tmp_path, good, data):
    """Cut, repeat and replace bytes anywhere: nothing but a ScenarioError is ever raised."""
    content = bytearray((good + VARIANTS).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 12)))
        content[start:end] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"{", b"&a ", b"*a", b"null"]))
        )
    path = tmp_path / "s.yaml"
    path.write_bytes(content)

    try:
        outcome = tuple(load_scenario(path).trials)
    except ScenarioError as error:
        outcome = tuple(problem for problem in error.problems if problem.startswith(str(path)))

    assert outcome


def test_each_variant_becomes_a_trial_with_its_changes_merged_in(load, good):
    """What a variant does not mention is the scenario's."""
    trials = load(good + VARIANTS).trials

    assert list(trials) == ["asgd", "adacomp"]
    assert (trials["asgd"].method.name, trials["asgd"].method.parts["compression"].name) == ("asgd", "none")
    assert (
        trials["adacomp"].method.name,
        trials["adacomp"].method.parts["compression"].settings["fraction"],
    ) == ("adacomp", 0.1)
    assert trials["asgd"].task == trials["adacomp"].task


@pytest.mark.parametrize(
    ("base", "overlay", "expected"),
    [
        ("{preset: adacomp, compression: {fraction: 0.5}}", "asgd", ("asgd", "none", None, "whole-update")),
        ("{preset: adacomp, compression: {fraction: 0.5}}", "adacomp", ("adacomp", "top-k", 0.5, "per-parameter")),
        (
            "{preset: adacomp, compression: {fraction: 0.5}}",
            "{compression: {scope: model}}",
            ("adacomp", "top-k", 0.5, "per-parameter"),
        ),
        (
            "{preset: adacomp, compression: {fraction: 0.5}}",
            "{compression: {name: none}}",
            ("adacomp", "none", None, "per-parameter"),
        ),
        ("adacomp", "{aggregation: {staleness: none}}", ("adacomp", "top-k", 0.01, "none")),
        (
            "{preset: adacomp, compression: {fraction: 0.5}}",
            "{compression: null}",
            ("adacomp", "top-k", 0.01, "per-parameter"),
        ),
        (
            "{aggregation: {name: asynchronous}, compression: {name: none}}",
            "{compression: {name: top-k}}",
            ("custom", "top-k", 0.01, "whole-update"),
        ),
    ],
)
def test_a_variants_method_is_merged_part_by_part(load, good, base, overlay, expected):
    """Another preset replaces everything, another part name drops that part's settings, anything else is added."""
    text = good.replace("adacomp", base) + f"variants: {{ v: {{ method: {overlay} }} }}\n"
    method = load(text).trials["v"].method

    name, compression, fraction, staleness = expected
    assert (name, compression) == (method.name, method.parts["compression"].name)
    assert fraction == method.parts["compression"].settings.get("fraction")
    assert staleness == method.parts["aggregation"].settings["staleness"]


def test_a_choice_is_replaced_as_a_whole_by_a_variant(load, good):
    """`{dirichlet: …}` over `{by-label: …}` is not both."""
    text = good.replace("model: small", "model: small\n  split: { by-label: 2 }") + (
        "variants:\n  v: { task: { split: { dirichlet: 0.5 } }, fleet: { edge: { waiting: { uniform: [0s, 1s] } } } }\n"
    )
    trial = load(text.replace("count: 2", "waiting: { exponential: 1s }")).trials["v"]

    assert Split("dirichlet", 0.5) == trial.task.split
    assert Waiting(distribution="uniform", low_s=0.0, high_s=1.0) == trial.fleet["edge"].waiting


def test_null_takes_a_key_away(load, good):
    """From the scenario, by a variant or by an option."""
    text = good.replace("updates: 10", "updates: 10, time: 5s") + "variants: { v: { stop: { time: null } }, w: }\n"
    trials = load(text, "fleet.edge.cpus=null").trials

    assert (trials["v"].stop.time, trials["w"].stop.time) == (None, 5.0)
    assert trials["w"].fleet["edge"].cpus is None


@pytest.mark.parametrize("option", ["expect=null", "faults=null", "on_failure=null", "variants.asgd.deadlines=null"])
def test_a_section_that_is_not_there_can_be_taken_away(load, good, option):
    """So one command takes it from any scenario; a name that is none is a mistake, whatever it is set to."""
    assert load(good + VARIANTS, option).trials == load(good + VARIANTS).trials
    with pytest.raises(ScenarioError, match="unknown key"):
        load(good + VARIANTS, option.replace("=", "s="))


def test_an_option_overrides_every_variant(load, good):
    """Also where a variant says otherwise; a variant alone is reached by its name."""
    text = good + "variants: { v: { stop: { updates: 7 } }, w: {} }\n"
    trials = load(text, "stop.updates=5", "fleet.edge.count=8", "variants.w.task.batch_size=3", "seed=9").trials

    assert [trial.stop.updates for trial in trials.values()] == [5, 5]
    assert [trial.fleet["edge"].count for trial in trials.values()] == [8, 8]
    assert [trial.task.batch_size for trial in trials.values()] == [10, 3]


def test_options_are_read_as_yaml_and_applied_in_order(load, good):
    """Mappings, lists and units are what they are in the file."""
    trial = load(
        good, "fleet.edge.waiting={uniform: [0s, 200ms]}", "stop.time=1m", "stop.time=2m", "task.split.by-label=2"
    )
    (trial,) = trial.trials.values()

    assert Waiting(distribution="uniform", low_s=0.0, high_s=0.2) == trial.fleet["edge"].waiting
    assert (120.0, Split("by-label", 2)) == (trial.stop.time, trial.task.split)


PRESET_FIRST = ("method=asgd", "method.aggregation.learning_rate=0.5")
METHOD_OPTIONS = (
    "method.aggregation.learning_rate=0.5",
    "method.preset=asgd",
    "method.compression.fraction=0.2",
    "method.compression.name=top-k",
    "variants.adacomp.method.compression.scope=model",
)


@given(options=st.permutations(METHOD_OPTIONS))
def test_the_order_of_options_for_a_method_does_not_matter(tmp_path, good, options):
    """A preset, or a part's name, takes nothing of what another option says."""
    path = tmp_path / "s.yaml"
    path.write_text(good + VARIANTS, encoding="utf-8")

    trials = load_scenario(path, options).trials

    for name, trial in trials.items():
        assert (trial.method.name, trial.method.parts["aggregation"].settings["learning_rate"]) == ("asgd", 0.5)
        assert trial.method.parts["aggregation"].settings["staleness"] == "whole-update"
        scope = "model" if name == "adacomp" else "tensor"
        settings = {"fraction": 0.2, "scope": scope, "residual": False, "values": "float32"}
        assert trial.method.parts["compression"].settings == settings


@pytest.mark.parametrize("options", [PRESET_FIRST, PRESET_FIRST[::-1]])
def test_a_method_given_by_its_preset_alone_keeps_other_options_too(load, good, options):
    """`method` is `method.preset`."""
    (trial,) = load(good, *options).trials.values()

    assert (trial.method.name, trial.method.parts["aggregation"].settings["learning_rate"]) == ("asgd", 0.5)


@pytest.mark.parametrize(
    "options", [("stop.updates=5", "variants.v.stop.updates=6"), ("variants.v.stop.updates=6", "stop.updates=5")]
)
def test_an_option_for_one_variant_comes_after_those_for_all(load, good, options):
    """Wherever it stands."""
    trials = load(good + "variants: { v: {}, w: {} }\n", *options).trials

    assert (trials["v"].stop.updates, trials["w"].stop.updates) == (6, 5)


def test_a_new_class_or_variant_is_given_as_a_whole(load, good):
    """And one can be taken away."""
    scenario = load(good + VARIANTS, "fleet.slow={count: 3, compute_speed: 0.5}", "variants.asgd=null", "variants.b={}")

    assert list(scenario.trials) == ["adacomp", "b"]
    assert [(name, c.count) for name, c in scenario.trials["b"].fleet.items()] == [("edge", 2), ("slow", 3)]


def test_a_dict_is_loaded_like_a_file(load, good):
    """The Python interface takes what YAML would give."""
    scenario = load_scenario(
        {
            "name": "small",
            "question": "Does it load?",
            "seed": 3,
            "task": {"data": "digits", "model": "small"},
            "method": "adacomp",
            "fleet": {"edge": {"count": 2, "cpus": 0.5, "memory": "256MiB"}},
            "stop": {"updates": 10},
        }
    )

    assert load(good).trials == scenario.trials


def test_mistakes_in_a_dict_are_reported_by_path():
    """There are no lines to name."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario({"name": "x", "stop": {"updates": 0}}, ["seed=x"])

    assert caught.value.problems == (
        "missing key 'task'",
        "missing key 'method'",
        "missing key 'fleet'",
        "stop.updates: 0 is below 1",
        "--set seed=x: not a whole number: 'x'",
    )


@pytest.mark.parametrize(
    "extra",
    [
        "",
        VARIANTS,
        "expect: { best_accuracy: '>= 0.9', ingress_bytes: '<= 10MB', time_s: '<= 1m' }\n",
        "evaluation: { every: 5s }\nserver: { cpus: 2, memory: 1GiB }\ndeadlines: { join: 500ms }\n",
        "variants:\n  v: { task: { split: { dirichlet: 0.5 } }, fleet: { edge: { waiting: { uniform: [0s, 1s] } } }}\n",
        "pull: changed-since\nserver: { uplink: 10mbit, latency: 40ms, jitter: 5ms, loss: 0.5% }\n",
        "variants:\n  v: { server: { link_steps: [{ at: 30s, downlink: 1mbit }, { at: 1m, latency: 0s }] } }\n",
        "expect: { verdict: trusted }\n",
        "variants:\n  v: { method: { preset: null, aggregation: { name: asynchronous}, compression: {name: none}}}\n",
    ],
)
def test_the_resolved_form_loads_as_the_same_scenario(load, good, extra):
    """Every default, variant and option is written out, and reading it changes nothing."""
    scenario = load(good + extra, "fleet.edge.count=4")

    again = load(resolved_yaml(scenario))

    assert scenario.trials == again.trials
    assert (scenario.name, scenario.question, scenario.seed) == (again.name, again.question, again.seed)
    assert resolved_yaml(scenario) == resolved_yaml(again)


def test_a_place_is_known_for_what_only_the_data_can_show(load, good):
    """The deepest key that was written stands for what was not."""
    scenario = load(good + VARIANTS)

    assert str(scenario.place("asgd", "task.model")) == "s.yaml:6:10: task.model"
    assert str(scenario.place("asgd", "task.batch_size")) == "s.yaml:5:3: task"
    assert str(scenario.place("asgd", "method")) == "s.yaml:12:19: variants.asgd.method"
    assert str(scenario.place("asgd", "deadlines.join")) == "deadlines.join"
