"""Checks an expression: its types, then its literals. The result is the tree with types and references.

Literals are checked as in Kubernetes: mixed lists and maps (allowed in arguments of `format`), invalid patterns, times
and formats. The rules are cel-go v0.26's cel/validator.go and ext/formatting.go, which k8s.io/apiserver v0.36.1
pkg/cel/environment/base.go turns on. folding.py checks constant calls such as `duration(dyn('x'))`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from webhook.cel.check.checker import TypeChecker
from webhook.cel.check.inference import is_optional, type_text
from webhook.cel.check.node_types import HANDLERS
from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Overload
from webhook.cel.library.dispatch import fitting_implementation
from webhook.cel.library.format_string import REFUSALS, FormatProblem, split_into_clauses
from webhook.cel.library.patterns import PatternTable
from webhook.cel.syntax.parser import DEPTH_LIMIT, parse
from webhook.cel.syntax.tree import Call, ListNode, Literal, MapNode, Node, children
from webhook.cel.types import BYTES, DYN, Type
from webhook.errors import BudgetExceeded, CompileError, CompileIssue, EvaluationError


class CheckedTree(Struct, frozen=True, kw_only=True):
    """A tree with its types and references. The keys of the tables are `id(node)`.

    Args:
        node: the tree.
        result: the type of the whole expression.
        names: the full names of the variables that the expression reads.
        types: the type of each node; dyn if the type is known only at run time.
        references: the full name that a node refers to. An Ident or Select refers to a variable or a type, and a
            StructNode to a type. A Call with a namespace as its target refers to a function. Variables of macros are
            left out.
        type_names: the full names of the types that the expression names.
        overloads: the signatures of a call that fit the known types.
        candidates: the signatures for the choice at run time, if they differ from `overloads`. cel-go then chooses
            among all signatures with this number of arguments.
        planned: as in Environment.
        patterns: the constant patterns of the expression.
        has_opaque: whether a dyn value may have a type that JSON lacks, such as bytes or an IP address. False unless
            the expression makes such a value, or a declared structure has a field of type dyn.
    """

    node: Node
    result: Type
    names: frozenset[str]
    types: Mapping[int, Type]
    references: Mapping[int, str]
    type_names: frozenset[str]
    overloads: Mapping[int, tuple[Overload, ...]]
    candidates: Mapping[int, tuple[Overload, ...]]
    patterns: PatternTable = field(default_factory=PatternTable)
    planned: bool = True
    has_opaque: bool = True

    def type_of(self, node: Node) -> Type:
        return self.types.get(id(node), DYN)

    def name_referred_to(self, node: Node) -> str | None:
        """Return the full name of the variable, function or type that a node refers to, or None."""
        return self.references.get(id(node))


def parse_and_check(
    source: str, environment: Environment, expects: Sequence[Type] = (), patterns: PatternTable | None = None
) -> CheckedTree:
    """Parse and check an expression.

    Args:
        source: the text of the expression.
        environment: what the expression may use.
        expects: the allowed types of the result; empty allows all. As in kube-apiserver, dyn does not count as bool.
        patterns: compiles constant patterns; None for an expression of a policy.

    Raises:
        CompileError: the expression has issues, all of which the error lists.
    """
    return check_tree(parse(source, environment), environment, expects, source=source, patterns=patterns)


def check_tree(
    node: Node,
    environment: Environment,
    expects: Sequence[Type] = (),
    *,
    source: str = "",
    patterns: PatternTable | None = None,
) -> CheckedTree:
    """Check a parsed expression as `parse_and_check` does. Issues have lines and columns of `source`."""
    checker = TypeChecker(source, environment, patterns or PatternTable(), HANDLERS)
    try:
        checker.handlers[type(node)](checker, node)
    except RecursionError:
        raise CompileError(
            source, (CompileIssue(f"expression recursion limit exceeded: {DEPTH_LIMIT}", -1, -1),)
        ) from None
    checker.types = checker.inference.final_types(checker.types)
    if not environment.strict:
        checker.issues.clear()
        checker.types = dict.fromkeys(checker.types, DYN)
    elif not checker.issues:
        _check_literals(checker)
    result = checker.types[id(node)]
    if not checker.issues and expects and result not in expects:
        checker.issues.report_of_all(CompileIssue(result_type_error(result, expects), 0, 0))
    if checker.issues:
        raise checker.issues.as_error()
    return CheckedTree(
        node=node,
        result=result,
        names=frozenset(checker.names),
        types=checker.types,
        references=checker.references,
        type_names=frozenset(checker.type_names),
        overloads=checker.overloads,
        candidates=checker.choices,
        patterns=checker.patterns,
        planned=environment.planned,
        has_opaque=checker.has_opaque or any(map(_any_returns_opaque, checker.overloads.values())),
    )


def _any_returns_opaque(overloads: Sequence[Overload]) -> bool:
    return any(_is_opaque(overload.result) for overload in overloads)


def _is_opaque(kind: Type) -> bool:
    return kind.kind == "opaque" or kind == BYTES or any(map(_is_opaque, kind.parameters))


def result_type_error(result: Type, expects: Sequence[Type]) -> str:
    """Return the API server's error for an expression with a result of an unexpected type."""
    if len(expects) == 1:
        return f"must evaluate to {expects[0]} but got {result}"
    return f"must evaluate to one of [{' '.join(map(str, expects))}] but got {result}"


# ---- literals


_NUMBERS = frozenset({"int", "uint"})
_ANY_TEXT = frozenset(
    {
        "list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    }
)  # fmt: skip
_ALLOWED = {
    "s": _ANY_TEXT,
    "d": _NUMBERS,
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": _NUMBERS | {"bool"},
    "x": _NUMBERS | {"string", "bytes"},
    "o": _NUMBERS,
}
"""The types for each clause of a format; dyn is checked at run time."""


def _check_literals(checker: TypeChecker) -> None:
    # reports the literals that Kubernetes rejects
    exempt: set[int] = set()
    if checker.environment.homogeneous:
        for node in checker.order:
            if isinstance(node, Call) and node.function == "format":
                _add_nodes_below(node, exempt)
    for node in checker.order:
        if isinstance(node, Call):
            _check_call_literals(checker, node)
        elif checker.environment.homogeneous and id(node) not in exempt:
            _check_mixed_types(checker, node)


def _add_nodes_below(node: Node, inside: set[int]) -> None:
    pending = list(children(node))
    while pending:
        current = pending.pop()
        inside.add(id(current))
        pending.extend(children(current))


def _check_mixed_types(checker: TypeChecker, node: ListNode | MapNode) -> None:
    if isinstance(node, ListNode):
        _check_same_type(
            checker, [(each, index in node.optional) for index, each in enumerate(node.elements)], stop=True
        )
        return
    _check_same_type(checker, [(entry.key, False) for entry in node.entries])
    _check_same_type(checker, [(entry.value, entry.optional) for entry in node.entries])


def _check_same_type(checker: TypeChecker, parts: list[tuple[Node, bool]], *, stop: bool = False) -> None:
    first: Type | None = None
    for part, optional in parts:
        static = checker.types[id(part)]
        if optional:
            static = static.parameters[0] if is_optional(static) else DYN
        if first is None:
            first = static
        elif static != first:
            checker.report_issue(f"expected type '{type_text(first)}' but found '{type_text(static)}'", part)
            if stop:
                return


def _check_call_literals(checker: TypeChecker, node: Call) -> None:
    if node.function == "format":
        if "format" not in checker.environment.extensions:
            _check_format_call(checker, node)
    elif node.function in ("duration", "timestamp", "matches") and node.arguments:
        argument = node.arguments[0]
        if isinstance(argument, Literal) and not _is_valid_literal(checker, node, argument.value):
            checker.report_issue(f"invalid {node.function} argument", argument)
    elif any(overload.is_literal for overload in checker.overloads.get(id(node), ())):
        _check_call_requiring_literals(checker, node)


def _check_call_requiring_literals(checker: TypeChecker, node: Call) -> None:
    # also reports a call that fails with its literals
    values = [argument.value for argument in node.arguments if isinstance(argument, Literal)]
    if len(values) < len(node.arguments):
        checker.report_issue(f"{node.function} takes a literal", node)
        return
    try:
        fitting_implementation(checker.overloads[id(node)], tuple(values))(*values)
    except EvaluationError as error:
        checker.report_issue(str(error), node.arguments[0])


def _is_valid_literal(checker: TypeChecker, node: Call, value: object) -> bool:
    try:
        if node.function != "matches":
            fitting_implementation(checker.overloads[id(node)][:1], (value,))(value)
        elif isinstance(value, str):
            checker.patterns.compiled_pattern(value)
    except BudgetExceeded:
        raise  # the literal is too large or the time is up, so the literal may be valid
    except (EvaluationError, ValueError):
        return False
    return True


def _check_format_call(checker: TypeChecker, node: Call) -> None:
    target, arguments = node.target, node.arguments
    if not isinstance(target, Literal) or not isinstance(target.value, str):
        return
    if len(arguments) != 1 or not isinstance(arguments[0], ListNode):
        return
    elements, used = arguments[0].elements, 0
    try:
        for part in split_into_clauses(target.value, len(elements)):
            if isinstance(part, str):
                continue
            culprit = _node_not_formattable(checker, elements[used], _ALLOWED[part.letter])
            if culprit is not None:
                complaint = REFUSALS[part.letter].format(checker.types[id(culprit)].name)
                checker.report_issue(f"error during formatting: {complaint}", culprit)
                return
            used += 1
    except FormatProblem as problem:
        checker.report_issue(str(problem), node)
        return
    if len(elements) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        checker.report_issue(text, node)


def _node_not_formattable(checker: TypeChecker, node: Node, allowed: frozenset[str]) -> Node | None:
    # for %s, the elements of a literal list or map are also checked
    pending = [node]
    while pending:
        current = pending.pop()
        name = checker.types[id(current)].name
        if name != DYN.name and name not in allowed:
            return current
        if allowed is _ANY_TEXT and isinstance(current, ListNode | MapNode):
            pending.extend(reversed(children(current)))
    return None
