"""What Volcano's webhook and the schema refuse of a HyperNode, and HyperNodes that hold themselves.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/hypernodes/validate, and the rules of the CustomResource-
Definition about selectors. Regular expressions are Go's, RE2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel.library.regex import LONG_PATTERN, matcher
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.job import spec_of
from webhook.paths import get
from webhook.placeholders import names_variable
from webhook.problem import Problem

problem: Final = Group("volcano-hyper-node").problem
_SELECTORS: Final = ("exactMatch", "regexMatch", "labelMatch")


def hyper_node(subject: Subject) -> Iterator[Problem]:
    """The members of a HyperNode."""
    own = get(subject.object, ("metadata", "name"), "")
    for index, member in enumerate(subject.deadline.paced(spec_of(subject.object).get("members") or ())):
        at, selector = ("spec", "members", index, "selector"), member.get("selector")
        given = [name for name in _SELECTORS if selector is not None and selector.get(name) is not None]
        if selector is not None and len(given) != 1:
            held = " and ".join(given) or "no selector"
            verb = "are" if len(given) > 1 else "is"
            message = f"{verb} given, but a member has exactly one of {', '.join(_SELECTORS)}"
            yield problem("one-selector", at, message, "keep one of them" if given else "add a selector", shown=held)
        pattern = get(selector, ("regexMatch", "pattern"), "")
        if error := _error(pattern):
            path = (*at, "regexMatch", "pattern")
            yield problem(
                "pattern", path, f"is not a valid regular expression ({error})", "correct the pattern", pattern
            )
        exact = get(selector, ("exactMatch", "name"), "")
        if member.get("type") == "HyperNode" and exact == own and own:
            message = "is this HyperNode itself, which cannot be its own member"
            yield problem("member-itself", (*at, "exactMatch", "name"), message, "name another HyperNode", exact)


def _error(pattern: str) -> str:
    """Why a text is not a regular expression; "" for a good one, and for what is filled in later or very long."""
    if len(pattern) > LONG_PATTERN or names_variable(pattern):
        return ""
    try:
        matcher(pattern)
    except ValueError as error:
        return str(error)
    return ""
