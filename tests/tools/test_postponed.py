"""Annotations of a module that postpones them: they mean the same."""

from __future__ import annotations

from typing import Annotated, NotRequired, Required, TypedDict

import pytest
from pydantic import Field

from hatchway import ToolError, tool
from hatchway.tools.stubs import render_stubs


class Place(TypedDict):
    street: str
    code: NotRequired[Annotated[int, Field(description="of the post")]]


class Parcel(TypedDict, total=False):
    to: Required[Place]
    note: str


def send(parcel: Parcel) -> Place:
    """Send it."""
    return parcel["to"]


def test_the_stub_says_which_keys_must_be_given() -> None:
    assert render_stubs([tool(send)]).startswith(
        "from typing import NotRequired, TypedDict\n\n"
        "class Place(TypedDict):\n    street: str\n    code: NotRequired[int]  # of the post\n\n"
        "class Parcel(TypedDict):\n    to: Place\n    note: NotRequired[str]\n"
    )


def test_what_the_stub_says_is_what_is_checked() -> None:
    given = {"to": {"street": "Elm"}}
    assert tool(send).bind((given,), {}) == {"parcel": given}
    with pytest.raises(ToolError, match=r"^send\(\): parameter 'parcel\.to' is missing"):
        tool(send).bind(({"note": "x"},), {})
