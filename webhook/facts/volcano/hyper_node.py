"""Rules of Volcano's webhook and schema for a HyperNode, and HyperNodes that contain themselves.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/hypernodes/validate, and the rules of the CustomResource-
Definition about selectors. Regular expressions are Go's, RE2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel.library.patterns import compile_user_pattern
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_HYPER_NODE
from webhook.facts.volcano_objects.types import HyperNode, HyperNodeMember
from webhook.placeholders import has_placeholder_variable
from webhook.problem import Problem

MEMBER_REQUIRED: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/member-required",
    title="A HyperNode has a member.",
    why="Without members it says nothing of any node.",
    function="validateHyperNode",
)
ONE_SELECTOR: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/one-selector",
    title="A member of a HyperNode has one selector.",
    why="Members are named, or found by a regular expression or by labels.",
    refused_by="the API server",
    source="volcano-sh/volcano@ed72c7c815a9 installer/helm/chart/volcano/crd/bases/topology.volcano.sh_hypernodes.yaml",
)
PATTERN: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/pattern",
    title="The pattern of a member is a regular expression.",
    why="No node would be found by it.",
    function="validateHyperNodeRegexPattern",
)
MEMBER_ITSELF: Final = VOLCANO_HYPER_NODE.rule(
    "volcano-hyper-node/member-itself",
    title="A HyperNode does not hold itself.",
    why="The tree of the topology would have a cycle.",
    refused_by="nobody; the topology is not a tree",
    level="warn",
    fails="silent",
)

_SELECTORS: Final = ("exactMatch", "regexMatch", "labelMatch")


def check_hyper_node(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a HyperNode's members."""
    node = subject.typed(HyperNode)
    if not node.spec.has("members"):  # an empty list is against the schema
        message = "must have a member because a HyperNode stands for the nodes that its members name"
        yield MEMBER_REQUIRED.problem(node.spec.path("members"), message, "add a member")
    for member in node.spec.members:
        yield from _check_one_selector(member)
        yield from _check_pattern(member)
        yield from _check_member_itself(member, node)


def _check_one_selector(member: HyperNodeMember) -> Iterator[Problem]:
    selector = member.selector
    given = [name for name in _SELECTORS if selector.has(name)]
    if selector and len(given) != 1:
        verb = "are" if len(given) > 1 else "is"
        message = f"{verb} given, but a member has exactly one of {', '.join(_SELECTORS)}"
        shown = " and ".join(given) or "no selector"
        yield ONE_SELECTOR.problem(selector.at, message, "keep one of them" if given else "add a selector", shown=shown)


def _check_pattern(member: HyperNodeMember) -> Iterator[Problem]:
    match = member.selector.regex_match
    if error := _error_of_pattern(match.pattern, match.reading.deadline):
        message = f"is not a valid regular expression ({error})"
        yield PATTERN.problem(match.path("pattern"), message, "correct the pattern", match.pattern)


def _check_member_itself(member: HyperNodeMember, node: HyperNode) -> Iterator[Problem]:
    exact = member.selector.exact_match
    if member.type == "HyperNode" and exact.name == node.name and node.name:
        message = "is this HyperNode itself, which cannot be its own member"
        yield MEMBER_ITSELF.problem(exact.path("name"), message, "name another HyperNode", exact.name)


def _error_of_pattern(pattern: str, deadline: Deadline) -> str:
    """Return why a text is not a regular expression; "" for a valid one, and for a placeholder."""
    if has_placeholder_variable(pattern):
        return ""
    try:
        compile_user_pattern(pattern, deadline)
    except ValueError as error:
        return str(error)
    return ""
