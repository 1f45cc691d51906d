"""Checks: validation code of an API, which says what is wrong with an object and decides nothing.

A package of facts lists its checks as `CHECKS` in `checks.py` and declares their rules in `problems.yaml`. Policies
name groups of checks and decide what each problem means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.attributes import JSON
from webhook.cluster.interest import Interest
from webhook.errors import ClaimgateError, InlineBudgetSpent
from webhook.paths import FieldPath, render
from webhook.problem import MissingObject, Problem
from webhook.typed.objects import Object

if TYPE_CHECKING:
    from webhook.facts.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Args:
        group: the group of rules that it may say are broken; several checks may share a group.
        run: walks the object and gives what is wrong, charging what it walks to the subject's deadline.
        kinds: the objects that it is about, as pairs of group and kind; () for every object.
        of_deletions: whether it is about objects that are being deleted, which no other check is asked about.
        when: whether it may have something to say at all, to be asked for with `Subject.once`; None if always.
        lookups: what it looks up in the cluster, with the fields that it reads: a live view holds nothing else.
    """

    group: str
    run: Callable[[Subject], Iterable[Problem]]
    kinds: frozenset[tuple[str, str]] = field(default=frozenset())
    lookups: tuple[Interest, ...] = ()
    of_deletions: bool = False
    when: Callable[[Subject], bool] | None = None

    def is_about(self, kind: tuple[str, str], *, is_deleted: bool) -> bool:
        """Whether it is asked about objects of a group and kind."""
        return self.of_deletions is is_deleted and (not self.kinds or kind in self.kinds)


def kinds_of(*types: type[Object]) -> frozenset[tuple[str, str]]:
    """The kinds of typed objects as a check declares them."""
    return frozenset((each.gvk.group, each.gvk.kind) for each in types)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rules whose problems a module makes: `problem = Group("train-job").problem`."""

    name: str

    def problem(
        self,
        rule: str,
        path: FieldPath | str,
        message: str = "",
        fix: str = "",
        found: JSON = None,
        *,
        shown: str = "",
        missing: tuple[MissingObject, ...] = (),
    ) -> Problem:
        """A problem of the group at a path, rendered already or not; `shown` in place of the value that is found."""
        where = path if isinstance(path, str) else render(path)
        value = shown or ("" if found is None else '`""`' if found == "" else f"`{found}`")
        return Problem(code=f"{self.name}/{rule}", path=where, message=message, fix=fix, found=value, missing=missing)


@dataclass(frozen=True, slots=True)
class Checked:
    """What some checks say of an object: what is wrong, and which rules miss an object, so that nobody knows."""

    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Problem, ...] = ()


NOTHING: Final = Checked()


def check(checks: Iterable[Check], subject: Subject) -> Checked:
    """What some checks that are about an object say of it, in their order."""
    said: list[Problem] = []
    for each in checks:
        try:
            if each.when is None or subject.once(each.when):
                said.extend(each.run(subject))
        except (ClaimgateError, InlineBudgetSpent):
            raise
        except Exception as fault:
            fault.add_note(each.group)  # whoever answers for it says in which checks it happened
            raise
    if not said:
        return NOTHING
    return Checked(tuple(each for each in said if not each.missing), tuple(each for each in said if each.missing))
