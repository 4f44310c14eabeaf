"""Values as people are shown them."""

from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.values import as_python

HUGE = 10**5000


@given(st.recursive(st.none() | st.integers() | st.text() | st.floats(), st.lists, max_leaves=10))
def test_a_value_is_written_as_python_writes_it(value: object) -> None:
    assert as_python(value) == repr(value)


def test_an_int_that_python_does_not_write_is_told_by_its_size() -> None:
    assert as_python(HUGE) == "<int of 16610 bits>"
    assert as_python({"a": [1, -HUGE], HUGE: (True, {HUGE})}) == (
        "{'a': [1, <int of 16610 bits>], <int of 16610 bits>: (True, {<int of 16610 bits>})}"
    )
