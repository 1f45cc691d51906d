"""Why something is wrong, without a rule: several kinds of Volcano have rules of their own for the same fault."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.paths import FieldPath
from webhook.problem import MissingObject


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a problem says, as `Group.problem` takes it.

    Args:
        path: where it is.
        message: what is wrong.
        fix: what to do.
        found: the value that is there.
        missing: what was needed and not there; with it, nobody knows whether something is wrong.
    """

    path: FieldPath | str
    message: str = ""
    fix: str = ""
    found: JSON = None
    missing: tuple[MissingObject, ...] = ()
