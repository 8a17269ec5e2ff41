"""Tests of the table of links' properties: all that a link has is in it, and every kind is read, written and made."""

import msgspec
import pytest

from edgebed.core.planned.link import IMPAIRMENTS, PROPERTIES, LinkChange, LinkPlan, LinkValues, is_impaired
from edgebed.scenario.links import LinkSection, LinkSettings

EXAMPLES = {"rate": "10mbit", "delay": "40ms", "packets": "1%"}


def test_every_property_is_in_the_table_and_a_key_of_scenarios():
    """The structs, the keys of a class and those of a change name the same ones."""
    fields = {each.field for each in PROPERTIES.values()}

    assert fields == set(LinkValues.__struct_fields__)
    assert fields == {*LinkChange.__struct_fields__} - {"at_s"}
    assert set(PROPERTIES) == set(LinkSettings.model_fields)
    assert set(PROPERTIES) <= set(LinkSection.model_fields)


@pytest.mark.parametrize("key", PROPERTIES)
def test_a_property_that_is_asked_for_later_is_asked_for(key):
    """Also where it is the only one, in one step of many."""
    each = PROPERTIES[key]
    value = each.read(EXAMPLES[each.kind])
    link = LinkPlan(changes=(LinkChange(), LinkChange(**{each.field: value})))

    assert each.text(value) == EXAMPLES[each.kind]
    assert (link.limited, link.delayed, link.lossy) == tuple(each.kind == kind for kind in ("rate", "delay", "packets"))
    assert is_impaired(msgspec.structs.replace(link, **{each.field: value})) == (each in IMPAIRMENTS)
