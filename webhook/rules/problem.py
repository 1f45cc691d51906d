"""Defines a mistake in an object as data: the broken rule, the place, the reason, and the fix.

Only code that shows problems converts them to text. No code parses these texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Moment: TypeAlias = Literal["", "create", "controller", "pending", "start", "waiting", "silent", "disruption"]
"""One of MOMENTS, or "" if the mistake has no moment."""
AT_ONCE: Final = "create"
MOMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        AT_ONCE: "Refused when it is created or changed",
        "controller": "Accepted, but the controller fails, or its pods are refused",
        "pending": "Accepted, but never admitted, scheduled or started",
        "start": "Pods start and fail",
        "waiting": "Pods run and wait for ever",
        "silent": "Runs, but not as the manifest says",
        "disruption": "Loses work or devices when something fails",
    }
)
"""The moments in order of time, with titles for users."""
NOT_FOUND: Final = "not found"


class MissingObject(Struct, frozen=True, kw_only=True):
    """An object that was needed and not found.

    Attributes:
        why: `not found`, `not looked up` with a reason, or the unknown part of the object.
        is_absent: the object was not found, so a file with this object would help. False for an object that was read.
    """

    kind: str
    name: str
    namespace: str = ""
    why: str = NOT_FOUND
    is_absent: bool = True

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.name, self.why) if part)


class Problem(Struct, frozen=True, kw_only=True):
    """A problem that one check found: `path: found message: fix`.

    Args:
        code: the id of the broken rule, `group/rule`, from the catalogue.
        path: the printed path of the field from the root of the checked object; "" means the object itself.
        message: the mistake and its reason. Its subject is `found` or the field: `must be a whole number because …`.
        fix: the fix as an imperative, such as `set 2`; "" if the message has the fix.
        found: the value in short form, such as "`500m`" or "a list"; "" if the field is the subject of `message`.
        also: paths of other places with the same mistake.
        missing: the objects that were needed and not found. With such an object, the rule could not be checked.
        excess: the amount by which a number is too large or too small; 0 if the rule compares no numbers. An update
            that does not increase the excess of a stored object may pass.
        is_for_administrators: whether only an administrator can apply the fix. Other problems are listed first.
        words: the wrong words in the field, such as a flag of a command. Reports about files mark the first word.
        needs: the name of a field of the pod or object that lacks a value, such as `volumes` for a mount; "" if the
            field at `path` is the problem.
        release: the release that no longer serves the version of the object; "" for other problems.
        is_conditional: whether the mistake exists only under a condition that nothing shows, such as an interface that
            NCCL may choose. Such a problem does not decide whether a job starts.
        fails: the moment at which an object with this mistake fails; None for the moment of the rule, "" if the object
            need not fail.
    """

    code: str
    path: str
    message: str = ""
    fix: str = ""
    found: str = ""
    also: tuple[str, ...] = ()
    missing: tuple[MissingObject, ...] = ()
    excess: int = 0
    is_for_administrators: bool = False
    words: tuple[str, ...] = ()
    needs: str = ""
    release: str = ""
    is_conditional: bool = False
    fails: Moment | None = None

    @property
    def found_and_message(self) -> str:
        """Return the value and the mistake, such as "`500m` must be a whole number"."""
        return " ".join(filter(None, (self.found, self.message)))

    @property
    def code_found_and_message(self) -> tuple[str, str, str]:
        """Return the problem without its path. Problems in different places can be compared."""
        return self.code, self.found, self.message
