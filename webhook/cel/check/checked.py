"""The result of checking an expression: its tree with types and references. `read` parses and checks a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from webhook.cel.check.checker import TypeChecker
from webhook.cel.check.literals import check_literals
from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Overload
from webhook.cel.library.patterns import PatternTable
from webhook.cel.syntax.parser import DEPTH_LIMIT, parse
from webhook.cel.syntax.tree import Node
from webhook.cel.types import BYTES, DYN, Type
from webhook.errors import CompileError, CompileIssue


class CheckedTree(Struct, frozen=True, kw_only=True):
    """A tree with its types and references. Keys of the tables are `id(node)`, valid for as long as the tree exists.

    Args:
        node: the tree.
        result: the type of the whole.
        names: the variables it reads, by their full names.
        types: the type of each node; dyn if it is known only at run time.
        references: the full name that a node refers to. An Ident or Select found here is a variable or, if the name is
            among type_names, a type; a Select found here is not a selection. A Call with a target found here is a
            function in a namespace: its target is part of the name. A StructNode's name is its type's. The variables of
            comprehensions are not here.
        overloads: the signatures that a call may come to: one when the types are known, all that fit otherwise.
        candidates: the signatures among which a call chooses when it runs, if they are not the same: cel-go forgets
            then what the checker has left of them, unless it has left only one.
        planned: whether constants that fail refuse the expression (Environment.planned).
        patterns: its constant patterns.
        has_opaque: whether a value of type dyn may be one of a type that JSON has no values of, such as bytes or an IP
            address: only if the expression makes one, or if a declared structure has a field of type dyn.
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
        """Return the static type of a node of this tree."""
        return self.types.get(id(node), DYN)

    def name_referred_to(self, node: Node) -> str | None:
        """Return the full name of the variable, function or type that a node refers to; None when it refers to none."""
        return self.references.get(id(node))


def parse_and_check(
    source: str, environment: Environment, expects: Sequence[Type] = (), patterns: PatternTable | None = None
) -> CheckedTree:
    """Parse and check an expression.

    Args:
        source: its text.
        environment: what it may use.
        expects: the types that its result may have, exactly; any when empty. dyn is a separate type here, as for
            kube-apiserver: an expression that must be bool has to be bool for every input.
        patterns: where its constant patterns are compiled; None for an expression of a policy.

    Raises:
        CompileError: with every issue found.
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
    """Check a parsed expression as `parse_and_check` does; `source` is only for the places of issues."""
    checker = TypeChecker(source, environment, patterns or PatternTable())
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
        check_literals(checker)
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
    """Return the API server's error for an expression whose result has another type than expected."""
    if len(expects) == 1:
        return f"must evaluate to {expects[0]} but got {result}"
    return f"must evaluate to one of [{' '.join(map(str, expects))}] but got {result}"
