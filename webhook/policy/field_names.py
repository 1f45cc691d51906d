"""Finds fields in expressions that no kind of the policy has: `object.spec.replica`, `Object.spec{replica: 1}`.

kube-apiserver writes such fields to `status.typeChecking` of a ValidatingAdmissionPolicy. kube-apiserver checks the
object with the type of each kind that the rules name. So it also reports fields that only some of the kinds lack.
Source: kubernetes v1.36 pkg/admission/plugin/policy/validating/typechecking.go. This module does not report a field
that only some kinds lack, because policies distinguish kinds with `has()`. Only the fields of built-in kinds are known.
If rules name other kinds, or wildcards, nothing is reported. API servers check `Object{…}` only during a request, which
then fails (mutating/patch/smd.go, "field not declared in schema").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import GroupVersionKind, plural_of_kind
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Macro, Node, Select, StructNode, children
from webhook.cluster.known_kinds import KNOWN_KINDS
from webhook.patch import schema as kubernetes
from webhook.patch.schema import is_builtin
from webhook.policy.compiled import Policy
from webhook.schema.types import Fields, Items, Type, type_of_node
from webhook.text.similar_names import nearest_name

_REMOVED_FIELDS: Final = frozenset(("source",))
"""Fields that only earlier releases had: `source` of claims in pods, until 1.30. Policies may read such a field, to
name the new field to users.
"""
_MACROS_OF_OPERAND_TYPE: Final = frozenset(("filter", "sortBy"))
"""Macros that return the type of their operand."""
_BINDING_MACROS: Final = frozenset(("bind", "optMap", "optFlatMap"))
"""Macros that bind their operand to a name and return the value of their argument."""

_METHOD_OF_OPERATOR: Final[Mapping[str, str]] = {
    "_<_": "isLessThan",
    "_>_": "isGreaterThan",
    "_<=_": "isGreaterThan",
    "_>=_": "isLessThan",
}
"""The method of quantities for each operator. For the operators in _OPPOSITES, the result of the method is negated."""
_OPPOSITES: Final = frozenset(("_<=_", "_>=_"))

Scope: TypeAlias = "Mapping[str, Type | None]"


class UndefinedField(Struct, frozen=True):
    """A sentence about a field that no kind has.

    `fails`: whether an expression with the field fails for every object. An expression that reads the field only with
    `has()` or `.?` does not fail.
    """

    text: str
    fails: bool


def undefined_fields(policy: Policy) -> Iterator[UndefinedField]:
    """Yield each field that expressions read or set and that no kind has. Yield nothing if the rules name an unknown
    kind.
    """
    kinds = tuple(named_kinds(policy))
    if None in kinds:
        return
    reader = _TypeInference()
    for kind in filter(None, kinds):
        root = type_of_node(kubernetes.schema_of_kind(kind))
        _infer_types_of_policy(policy, reader, {"object": root, "oldObject": root, "Object": root})
    yield from _unknown_fields(reader, " or ".join(dict.fromkeys(kind.kind for kind in kinds if kind)))


def undefined_fields_of_params(policy: Policy) -> Iterator[UndefinedField]:
    """Yield each field of `params` that expressions read and that the paramKind does not have."""
    kind = policy.param_kind
    if kind is not None and is_builtin(kind):
        reader = _TypeInference()
        _infer_types_of_policy(policy, reader, {"params": type_of_node(kubernetes.schema_of_kind(kind))})
        yield from _unknown_fields(reader, kind.kind)


def sentences_about_compared_quantities(policy: Policy) -> Iterator[str]:
    """Yield a sentence, with the fix, for each quantity that is compared as a string."""
    reader = _TypeInference()
    for kind in filter(None, named_kinds(policy)):
        root = type_of_node(kubernetes.schema_of_kind(kind))
        _infer_types_of_policy(policy, reader, {"object": root, "oldObject": root})
    yield from reader.compared.values()


def _infer_types_of_policy(policy: Policy, reader: _TypeInference, scope: dict[str, Type | None]) -> None:
    for name, expression in policy.variables.items():
        scope[f"variables.{name}"] = reader.infer_type_of_expression(expression.source, scope)
    for expression in policy.expressions():
        reader.infer_type_of_expression(expression.source, scope)


def _unknown_fields(reader: _TypeInference, names: str) -> Iterator[UndefinedField]:
    for path, near in reader.unknown.items():
        if path not in reader.known:
            late = ", which the API server reports only at admission (403)" if path in reader.written else ""
            text = f"`{path}` does not exist in {names}{late}{f': did you mean `{near}`?' if near else ''}"
            yield UndefinedField(text, fails=path not in reader.tested)


def named_kinds(policy: Policy) -> Iterator[GroupVersionKind | None]:
    """Yield the kinds that the rules name; None for a kind without a known schema."""
    kind_of_resource = {(group, plural_of_kind(kind)): kind for group, kind in sorted(KNOWN_KINDS)}
    for rule in policy.criteria.rules:
        for group in sorted(rule.groups or ("*",)):
            for version in sorted(rule.versions or ("*",)):
                for resource, sub in rule.resources:
                    name = kind_of_resource.get((group, resource), "") if not sub else ""
                    kind = GroupVersionKind(group, version, name)
                    yield kind if is_builtin(kind) else None


class _TypeInference(Struct):
    """Infers the types of expressions.

    Attributes:
        unknown: the paths that a kind lacks, each with a similar name or "".
        known: the paths that a kind has.
        written: the paths that a mutation sets.
        tested: the paths that an expression tests for presence.
        compared: a sentence about each comparison of quantities as strings.
    """

    unknown: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    compared: dict[str, str] = field(default_factory=dict)

    def infer_type_of_expression(self, text: str, scope: Scope) -> Type | None:
        """Return the type of an expression; None if unknown."""
        return self._infer_type_of_node(parse(text), scope)

    def _infer_type_of_node(self, node: Node, scope: Scope) -> Type | None:
        match node:
            case Ident():
                return scope.get(node.name)
            case Select() | Has():
                return self._infer_type_of_selection(node, scope)
            case Macro():
                return self._infer_type_of_macro(node, scope)
            case Call():
                return self._infer_type_of_call(node, scope)
            case StructNode():
                self._check_written_fields(node, scope)
        for each in children(node):
            self._infer_type_of_node(each, scope)
        return None

    def _infer_type_of_selection(self, node: Select | Has, scope: Scope) -> Type | None:
        if node.operand == Ident(node.operand.offset, "variables"):
            return scope.get(f"variables.{node.field}")
        operand_type = self._infer_type_of_node(node.operand, scope)
        if not isinstance(operand_type, Fields):
            return None
        path = f"{source_text(node.operand)}.{node.field}"
        if isinstance(node, Has) or node.optional:
            self.tested.add(path)
        self._record_field(operand_type, node.field, path)
        return operand_type.fields.get(node.field, operand_type.others)

    def _record_field(self, operand_type: Fields, name: str, path: str) -> None:
        is_escaped = name.startswith("__")  # names of fields that are keywords of CEL are escaped
        if (
            operand_type.fields
            and operand_type.others is None
            and name not in {*operand_type.fields, *_REMOVED_FIELDS}
            and not is_escaped
        ):
            self.unknown.setdefault(path, nearest_name(name, operand_type.fields))
        else:
            self.known.add(path)

    def _check_written_fields(self, node: StructNode, scope: Scope) -> None:
        """Check the fields of an object such as `Object.spec.containers{…}`. The type name is the path."""
        first, *path = node.name.split(".")
        written_type = scope.get(first)
        for name in path:
            written_type = (
                written_type.fields.get(name, written_type.others) if isinstance(written_type, Fields) else None
            )
            while isinstance(written_type, Items):
                written_type = written_type.item
        if isinstance(written_type, Fields):
            for entry in node.entries:
                shown = f"{node.name}.{entry.field}"
                self.written.add(shown)
                self._record_field(written_type, entry.field, shown)

    def _infer_type_of_call(self, node: Call, scope: Scope) -> Type | None:
        types = [self._infer_type_of_node(each, scope) for each in children(node)]
        match node.function:
            case "_[_]" | "_[?_]":
                return _entry_type(types[0], node.arguments[1])
            case "_<_" | "_>_" | "_<=_" | "_>=_" if "quantity" in types:
                self._record_comparison(node)
            case "_+_" | "orValue" | "value" | "or":
                return next(filter(None, types), None)
            case "_?_:_":
                return types[1] or types[2]
        return None

    def _record_comparison(self, node: Call) -> None:
        left, right = map(_as_quantity, node.arguments)
        fix = f"{'!' if node.function in _OPPOSITES else ''}{left}.{_METHOD_OF_OPERATOR[node.function]}({right})"
        shown = source_text(node)
        self.compared[shown] = f"`{shown}` compares quantities as strings, so `10` is less than `9`: write `{fix}`"

    def _infer_type_of_macro(self, node: Macro, scope: Scope) -> Type | None:
        operand_type = self._infer_type_of_node(node.operand, scope)
        *first, last = node.variables
        # in a loop over a map, a single variable is the key
        item = (
            operand_type
            if node.name in _BINDING_MACROS
            else _element_type(operand_type)
            if first or isinstance(operand_type, Items)
            else None
        )
        scope_of_macro = {**scope, **dict.fromkeys(first), last: item}
        types = [self._infer_type_of_node(each, scope_of_macro) for each in node.arguments]
        if node.name in _MACROS_OF_OPERAND_TYPE:
            return operand_type
        if node.name in _BINDING_MACROS:
            return types[-1]
        return Items(types[-1]) if node.name in {"map", "transformList"} and types[-1] else None


def _as_quantity(node: Node) -> str:
    is_number = isinstance(node, Literal) and isinstance(node.value, int | float)
    text = source_text(node)
    return f"quantity('{text}')" if is_number else f"quantity({text})"


def _element_type(collection_type: Type | None) -> Type | None:
    """Return the type of an item of a list, or of a value of a map."""
    if isinstance(collection_type, Items):
        return collection_type.item
    return collection_type.others if isinstance(collection_type, Fields) else None


def _entry_type(collection_type: Type | None, key: Node) -> Type | None:
    if isinstance(collection_type, Fields) and isinstance(key, Literal) and isinstance(key.value, str):
        return collection_type.fields.get(key.value, collection_type.others)
    return _element_type(collection_type)
