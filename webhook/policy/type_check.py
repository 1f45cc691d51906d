"""Finds values of wrong types in expressions: `object.spec.replicas > '3'`, `object.spec.containers.image`.

kube-apiserver reports such mistakes in `status.typeChecking` of a ValidatingAdmissionPolicy, which few people read.
kube-apiserver checks only validations, with the types of each kind that the rules name, and no
MutatingAdmissionPolicies. Source: kubernetes v1.36 pkg/admission/plugin/policy/validating/typechecking.go. This module
checks every expression. Policies distinguish kinds with `has()` or by name, so only an expression that fails for all
kinds is a mistake. For a kind without a known schema, only `metadata` has types. field_names.py finds fields that do
not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cel.check.checked import parse_and_check
from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Version
from webhook.cel.syntax.lexer import line_and_column
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Macro, Node, Select, children
from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, Type, list_of, map_of, object_type
from webhook.errors import CompileError, CompileIssue
from webhook.facts.subject import FactRegistry
from webhook.patch import schema as kubernetes
from webhook.policy import declarations
from webhook.policy.compiled import Policy
from webhook.policy.field_names import named_kinds, sentences_about_compared_quantities
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, kubernetes_type, type_of_node
from webhook.schema.types import Type as SchemaType

_SCALARS: Final[Mapping[object, Type]] = {
    "text": STRING,
    "quantity": STRING,
    "number": INT,
    "int64": INT,
    "int32": INT,
    "truth": BOOL,
}
_WORDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "uint": "a whole number",
    "double": "a number",
    "string": "a string",
    "bool": "a boolean",
    "null": "null",
    "timestamp": "a timestamp",
    "duration": "a duration",
}
_SYMBOL: Final = re.compile(r"_(\S+)_")
_CONDITIONAL: Final = "_?_:_"
_NO_FIELDS: Final = re.compile(r"type '(.*)' does not support field selection")
_NO_OVERLOAD: Final = "found no matching overload for '"
_NO_RANGE: Final = re.compile(r"expression of type '(.*)' cannot be range of a comprehension")


class _TypedKind(dict[str, Structure]):
    """The structure types of one kind, by name, and the type of its objects."""

    root: Type = DYN

    def cel_type(self, schema_type: SchemaType) -> Type:
        """Return the CEL type for a declared type, and store the structures that it needs."""
        if isinstance(schema_type, Items):
            return list_of(self.cel_type(schema_type.item))
        if not isinstance(schema_type, Fields):
            return _SCALARS.get(schema_type, DYN)
        if not schema_type.fields:
            return DYN if schema_type.others is None else map_of(STRING, self.cel_type(schema_type.others))
        name = schema_type.name or f"object.{len(self)}"
        if name not in self:
            self[name] = Structure(name, open=True)
            self[name] = Structure(
                name, {field: self.cel_type(each) for field, each in schema_type.fields.items()}, open=True
            )
        return object_type(name)


def sentences_about_types(policy: Policy, registry: FactRegistry, version: Version) -> Iterator[str]:
    """Yield a sentence, with the fix, for each use of a value of a wrong type."""
    common: dict[tuple[str, int, int], str] | None = None
    for kind in dict.fromkeys(named_kinds(policy)):
        environment = _environment_for_kind(policy, registry, version, kind)
        mistakes = dict(_mistakes_in_expressions(policy, environment))
        common = mistakes if common is None else {place: text for place, text in common.items() if place in mistakes}
    compared = list(sentences_about_compared_quantities(policy))
    quantities = [text.split("` ", 1)[0] for text in compared]
    yield from (text for text in (common or {}).values() if not any(each in text for each in quantities))
    yield from compared


def _environment_for_kind(
    policy: Policy, registry: FactRegistry, version: Version, kind: GroupVersionKind | None
) -> Environment:
    environment = declarations.create_expression_environment(
        version, params=policy.param_kind is not None, authorizer=True, mutation=policy.kind == "mutating"
    )
    facts = [registry.fact(name) for name in policy.facts]
    environment = declarations.with_problems(declarations.with_facts(environment, facts), policy.catalogue)
    typed = _typed_kind(kind)
    environment = environment.extended_with(variables={"object": typed.root, "oldObject": typed.root}, structures=typed)
    if policy.param_kind is not None and kubernetes.is_builtin(policy.param_kind):
        params = _typed_kind(policy.param_kind)
        environment = environment.extended_with(variables={"params": params.root}, structures=params)
    return environment


@cache
def _typed_kind(kind: GroupVersionKind | None) -> _TypedKind:
    typed = _TypedKind()
    typed.root = typed.cel_type(_schema_of_kind(kind))
    return typed


def _schema_of_kind(kind: GroupVersionKind | None) -> SchemaType:
    schema_type: SchemaType | None = None
    if kind is not None:
        schema_type = type_of_node(kubernetes.schema_of_kind(kind)) if kubernetes.is_builtin(kind) else type_of(kind)
    return schema_type or Fields(
        {"apiVersion": "text", "kind": "text", "metadata": kubernetes_type("meta.v1.ObjectMeta")}, name="object"
    )


def _mistakes_in_expressions(policy: Policy, environment: Environment) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Yield each mistake with its place: the path of the expression, line and column."""
    types: dict[str, Type] = {}
    names = iter(policy.variables)
    for path, expression in policy.expressions_with_paths():
        if expression.program is None:
            continue
        is_condition = path.startswith("spec.matchConditions")
        place = environment if is_condition else declarations.with_variables(environment, types)
        result = DYN
        try:
            result = parse_and_check(expression.source, place).result
        except CompileError as error:
            node = parse(expression.source)
            for issue in error.issues:
                text = _sentence_about_issue(issue, expression.source, node)
                yield (path, issue.line, issue.column), f"{path}: {text}"
        if path.startswith("spec.variables"):
            types[next(names)] = declarations.variable_type(result)


def _sentence_about_issue(issue: CompileIssue, source: str, root: Node) -> str:
    node = _node_at(root, source, issue)
    shown = source_text(node) if node is not None else source.strip()
    if match := _NO_FIELDS.match(issue.message):
        return f"`{shown}`: {_sentence_about_selection(node, match[1], root)}"
    if issue.message.startswith(_NO_OVERLOAD) and isinstance(node, Call):
        return f"`{shown}`: {_sentence_about_call(node, _types_of_call(issue.message))}"
    if match := _NO_RANGE.match(issue.message):
        return f"`{shown}` is {_type_in_words(match[1])}, and only lists and maps have elements"
    return f"`{shown}`: {issue.message}"


def _sentence_about_selection(node: Node | None, type_name: str, root: Node) -> str:
    if not isinstance(node, Select | Has):
        return f"{_type_in_words(type_name)} has no fields"
    operand = source_text(node.operand)
    mistake = f"`{operand}` is {_type_in_words(type_name)}, which has no fields"
    if type_name.startswith("list("):
        return f"{mistake}: test its elements, as in `{operand}.all(x, x.{node.field} …)` or `{operand}.exists(x, …)`"
    macro = _macro_with_variable(root, operand) if isinstance(node.operand, Ident) else None
    if macro is not None and type_name == "string":
        mapped = source_text(macro.operand)
        return f"{mistake}: over a map, `{operand}` is the key; write `{mapped}[{operand}]` for its value"
    return f"{mistake}: remove `.{node.field}`, or read another field"


def _types_of_call(message: str) -> tuple[str, ...]:
    """Return the types of a call's target, if there is a target, and of its arguments, from a message of the type
    checker.
    """
    applied = message.partition("' applied to '")[2].removesuffix("'").removesuffix(")")
    target, has_target, arguments = applied.partition(".(")
    return _split_types(f"{target}, {arguments}" if has_target else applied.removeprefix("("))


def _sentence_about_call(node: Call, types: tuple[str, ...]) -> str:
    """Return why a function does not accept the values of a call, and the fix."""
    values = node.arguments if node.target is None else (node.target, *node.arguments)
    function = node.function
    if len(values) == 2 and len(types) == 2:
        left, right = values
        if "null" in types:
            never_null = source_text(right if types[0] == "null" else left)
            return f"`{never_null}` is never null: write `has({never_null})` instead"
        if function == "contains" and types[0].startswith("list("):
            return f"a list has no function `contains`: write `{source_text(right)} in {source_text(left)}`"
        if function == "@in" and types[1] == "string":
            return (
                "`in` looks for an element of a list or a key of a map: "
                f"write `{source_text(right)}.contains({source_text(left)})`"
            )
        if function == "_[_]" and types[0].startswith("list("):
            return (
                f"a list has numbers as indices: write `{source_text(left)}.exists(x, x.name == {source_text(right)})`"
            )
        if function == "_+_" and all(each.startswith("list(") for each in types):
            return (
                "the elements of the lists have different types; API servers evaluate it and warn in "
                f"`status.typeChecking`: write `dyn({source_text(right)})`"
            )
        if _SYMBOL.fullmatch(function):
            operator, fix = _function_in_words(function), _fix_for_operands(left, right, types)
            return f"{_type_in_words(types[0])} and {_type_in_words(types[1])} do not fit {operator}: {fix}"
    return _sentence_about_function(node, types)


def _sentence_about_function(node: Call, types: tuple[str, ...]) -> str:
    if node.function == _CONDITIONAL and len(types) == 3:
        if types[0] not in ("bool", "dyn"):
            return f"{_type_in_words(types[0])} is before `?`: write a condition there, such as a comparison"
        results = [_type_in_words(each) for each in types[1:]]
        described = f"{results[0]} and {results[1]}" if results[0] != results[1] else f"`{types[1]}` and `{types[2]}`"
        return (
            f"the values after `?` and `:` have different types, {described}: "
            f"write `dyn({source_text(node.arguments[2])})`"
        )
    function = _function_in_words(node.function)
    if node.target is None:
        return f"{function} does not accept {', '.join(map(_type_in_words, types))}"
    mistake = f"{_type_in_words(types[0])} has no function {function} with such values"
    if types[0] == "int":
        return f"{mistake}: write `string({source_text(node.target)})` for its text"
    if types[0].startswith(("list(", "map(")):
        return f"{mistake}: call it on the elements, as in `{source_text(node.target)}.exists(x, …)`"
    return mistake


def _fix_for_operands(left: Node, right: Node, types: tuple[str, ...]) -> str:
    for literal, type_of_other, other in ((right, types[0], left), (left, types[1], right)):
        if not isinstance(literal, Literal):
            continue
        if isinstance(literal.value, str) and type_of_other in ("int", "bool", "double"):
            plain = literal.value.strip()
            if re.fullmatch(r"-?\d+|true|false", plain):
                return f"write `{plain}` without quotes"
        if type_of_other == "string" and isinstance(literal.value, bool):
            return f"write `'{str(literal.value).lower()}'` in quotes"
        if type_of_other == "string" and isinstance(literal.value, int):
            return f"write the number in quotes, or `int({source_text(other)})` for a text that is a number"
        if type_of_other == "bool" and isinstance(literal.value, int):
            return "compare it with `true` or `false`"
        if type_of_other.startswith("list("):
            return f"write `{source_text(literal)} in {source_text(other)}`, or test elements with `.all` and `.exists`"
        if type_of_other == "timestamp" and isinstance(literal.value, str):
            return f"write `timestamp({source_text(literal)})`"
    return "compare values of one type"


def _function_in_words(function: str) -> str:
    match = _SYMBOL.fullmatch(function)
    return f"`{match[1] if match else function.removeprefix('@')}`"


def _type_in_words(name: str) -> str:
    if name.startswith("list("):
        return "a list"
    if name.startswith("map("):
        return "a map"
    if name.startswith("optional_type("):
        return "an optional value"
    return _WORDS.get(name, "an object" if name[:1].isalpha() else name)


def _split_types(text: str) -> tuple[str, ...]:
    """Return the types of a list such as `map(string, string), int`."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return tuple(part for part in (*parts, text[start:].strip()) if part)


def _node_at(root: Node, source: str, issue: CompileIssue) -> Node | None:
    innermost, pending = None, [root]
    while pending:
        node = pending.pop()
        if line_and_column(source, node.offset) == (issue.line, issue.column):
            innermost = node
        pending += children(node)
    return innermost


def _macro_with_variable(root: Node, name: str) -> Macro | None:
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Macro) and len(node.variables) == 1 and node.variables[0] == name:
            return node
        pending += children(node)
    return None
