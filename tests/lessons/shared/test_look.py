"""The look of all figures: each kind of field has a colour, and lines that tell it without one."""

import pytest

import minfer_lib as mf
from minfer_lib.formats.elements import layout
from minfer_lib.lessons.shared.look import FIELD_ROLES, ROLES

ALL = list(mf.FORMATS)


@pytest.mark.parametrize("name", ALL)
def test_every_field_has_a_role_with_a_colour_and_lines_of_its_own(name):
    for field in mf.FORMATS[name].fields:
        assert FIELD_ROLES[field.name] in ROLES
    for parts in layout(name):
        assert all(part.number in FIELD_ROLES for part in parts)


def test_roles_differ_in_colour_and_in_lines():
    assert len({role.colour for role in ROLES.values()}) == len(ROLES)
    assert len({role.lines for role in ROLES.values()}) == len(ROLES)
