"""The table of a trial's measures: every number of a summary is one, and none is declared twice."""

import typing

from edgebed.core.measures.measure import SHARE
from edgebed.core.measures.trial import MEASURES, OF_PROGRAMS, STRUCTS, ProgramMeasures, measure_of, program_measures
from edgebed.journal.summary import TrialSummary
from edgebed.learning.objectives.multi_label import MultiLabel

NUMBERS = (int, float, int | None, float | None)


def numbers(struct):
    """The fields of a struct that are numbers."""
    return [name for name, declared in typing.get_type_hints(struct).items() if declared in NUMBERS]


def test_every_number_of_a_summary_is_a_measure_and_of_one_family():
    """A field without its unit would be missing in every table."""
    by_family = {family: numbers(struct) for family, struct in STRUCTS.items()}

    assert numbers(TrialSummary) == by_family["all"]
    assert [(name, each.family) for name, each in MEASURES.items()] == [
        (name, family) for family, names in by_family.items() for name in names
    ]


def test_a_measures_name_ends_with_its_unit():
    """As columns of exports and keys of `expect` tell it."""
    units = {"_bytes": "a size", "_s": "a duration", "_accuracy": "a fraction or percentage"}
    for name, each in MEASURES.items():
        unit = next((unit for end, unit in units.items() if name.endswith(end) and not name.endswith("_per_s")), None)
        assert unit in (None, each.unit.name), name


def test_whole_numbers_are_told_apart():
    """By the field's type."""
    whole = {name for struct in STRUCTS.values() for name, kind in typing.get_type_hints(struct).items()
             if kind in (int, int | None)}  # fmt: skip
    assert {name for name, each in MEASURES.items() if each.is_whole} == whole


def test_no_two_columns_have_one_heading():
    """Neither in the terminal's table nor where runs are compared."""
    for kind in ("column", "compared"):
        heads = [head for each in MEASURES.values() if (head := getattr(each, kind))]
        assert len(heads) == len(set(heads)) > 0


def test_each_number_of_a_tasks_measure_is_called_by_the_measures_label():
    """Also of those that have no column of their own."""
    names = ("best_f1_micro", "final_f1_macro", "last_loss", "client_worst_decile_f1_macro")
    titles = ["best F1 micro", "final F1 macro", "last loss", "client worst decile F1 macro"]
    assert [measure_of(name, MultiLabel.measures).title for name in names] == titles


def test_a_bound_on_a_share_may_be_a_percentage():
    """As the value at which a trial stops may be."""
    assert SHARE.read("97.5%") == SHARE.read("0.975") == 0.975


def test_a_trial_of_programs_has_numbers_of_its_own_of_each_number_of_output_and_of_any_trial():
    """Every number of its struct is one; a bound on bytes has their unit."""
    found = program_measures(["loss"])

    assert list(found)[:3] == ["final_loss", "min_loss", "max_loss"]
    assert set(numbers(ProgramMeasures)) <= OF_PROGRAMS.keys() < found.keys()
    assert {each.name for each in found.values()} == found.keys()
    assert {OF_PROGRAMS[name].family for name in OF_PROGRAMS} == {"program", "all"}
    assert found["traffic_bytes"].unit.read("400MB") == 400_000_000
