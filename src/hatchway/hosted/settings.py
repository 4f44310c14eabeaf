"""Settings: more arguments for an SDK's call, checked before any request is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

from hatchway.core.errors import InvalidSetting

CONVERSATION = "leave it out: run(session=…) keeps what was said"


def arguments(call: Callable[..., Any]) -> set[str]:
    """The words a call of an SDK takes."""
    return set(inspect.signature(call).parameters) - {"self"}


def checked(given: Mapping[str, Any], known: Collection[str], ours: Mapping[str, str]) -> dict[str, Any]:
    """Settings for an SDK's call.

    Args:
        given: What the user gave.
        known: The words the call takes.
        ours: Those the adapter writes itself, and what to do instead.

    Raises:
        InvalidSetting: A word the call does not take, or one that is the adapter's own.
    """
    for name in given:
        if name in ours:
            raise InvalidSetting(f"settings: {name!r} is written by the adapter", hint=ours[name])
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            raise InvalidSetting(
                f"settings: the SDK's call takes no {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else "leave it out; extra_body has what the SDK cannot name",
            )
    return dict(given)
