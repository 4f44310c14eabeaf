"""What each JSON schema keyword demands of a value. `KEYWORDS` is the table the compiler walks, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any
from uuid import UUID

from hatchway.core.errors import InvalidTool
from hatchway.tools.collections import array, object_
from hatchway.tools.problems import Problem, mismatch, shown, violation
from hatchway.tools.schema import Check, Node
from hatchway.tools.texts import matcher
