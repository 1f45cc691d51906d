"""Compiles one expression of a policy with the variables that its place allows. Errors have the messages of the API
server, and a hint: a similar name, the missing annotation, or the CEL for a habit of Python, jq, Rego or JavaScript.

Hints are shown only to people, below the errors. A habit is a sequence of tokens that belongs to another language.
`STRING` and `INT` match all literals of these types, `NAME` matches all names, and `START` matches the beginning of the
expression. The name of a field, after a dot, is never a habit. If two habits begin at the same token, the longer habit
is used.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/compile.go (CompileCELExpression) and composition.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.paths import FieldPath
from webhook.cel import Engine, library
from webhook.cel.check.checked import result_type_error
from webhook.cel.check.reads import WHOLE
from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Version
from webhook.cel.syntax.lexer import END, tokenize
from webhook.cel.types import Type
from webhook.errors import CompileError, CompileIssue
from webhook.facts.subject import SHIPPED, Fact
from webhook.manifests.annotations import PREFIX
from webhook.manifests.field_errors import FieldError, internal_error, invalid_error, required_error
from webhook.policy import declarations
from webhook.policy.compiled import Expression, Reads
from webhook.rules.catalogue import Catalogue
from webhook.rules.declarations import PROBLEMS
from webhook.text.similar_names import nearest_name

_HAS: Final = "a field that is not set is absent, not null: check `has(x.field)`, or read `x.?field.orValue(…)`"
_OR_VALUE: Final = "write `x[?'key'].orValue(…)` for an entry that may be absent"
_CHOICE: Final = "write `condition ? a : b` for a choice"
_WALK: Final = "write `list.all(x, …)`, `.exists(x, …)`, `.map(x, …)` or `.filter(x, …)` to walk a list"
_SIZE: Final = "write `size(x)` for a length"
_FORMAT: Final = "write `'%s of %d'.format([x, y])`, or `'a' + string(x)`, for a text with values in it"
_TEXT_OF_NUMBER: Final = "a text and a number cannot be added: write `string(…)` around the number"
_ASSIGN: Final = "an expression cannot assign: declare `variables.NAME` in `spec.variables`; `==` compares"
_CLOCK: Final = "an expression cannot read the time, because a second evaluation must have the same result"
_PIPE: Final = "there are no pipes: call functions one after the other, as in `list.filter(x, …).map(x, …)`; `||` is or"
_MATCHES: Final = "write `x.matches('…')` for a regular expression"
_OBJECT: Final = "the object is `object`, its former state `oldObject`, and the rest of the request is below `request`"
_PARAMS: Final = "data of a policy comes from `params`, an object that its binding names, or from `spec.variables`"

HABITS: Final[Mapping[str, str]] = {
    # Python
    "and": "write `&&` for and",
    "or": "write `||` for or",
    "not": "write `!x` for not",
    "not in": "write `!(x in y)` for not in",
    "None": _HAS,
    "is None": _HAS,
    "is not None": _HAS,
    "is": "write `==` to compare",
    "is not": "write `!=` to compare",
    "True": "write `true`",
    "False": "write `false`",
    "if": _CHOICE,
    "elif": _CHOICE,
    "else": _CHOICE,
    "for": _WALK,
    "lambda": "an expression cannot define functions: write `list.filter(x, …)` or `list.map(x, …)`",
    "len (": _SIZE,
    "any": _WALK,
    "any (": _WALK,
    "all (": _WALK,
    "sum (": "write `list.sum()`",
    "min (": "write `list.min()`",
    "max (": "write `list.max()`",
    "sorted (": "write `list.sort()`",
    "str (": "write `string(x)`",
    "float (": "write `double(x)`",
    "isinstance (": "write `type(x) == string` to test for a type",
    "f STRING": _FORMAT,
    "STRING + INT": _TEXT_OF_NUMBER,
    "INT + STRING": _TEXT_OF_NUMBER,
    "STRING %": _FORMAT,
    "* *": "there is no operator for powers: multiply",
    "[ INT :": "write `x.substring(1, 3)` for a part of a text, or `list.slice(1, 3)` for a part of a list",
    ". get (": _OR_VALUE,
    ". items (": "write `map.all(key, value, …)` to walk a map",
    ". keys (": "a map is walked by its keys: write `map.all(key, …)`",
    ". values (": "write `map.all(key, value, …)` to walk a map",
    ". lower (": "write `x.lowerAscii()`",
    ". upper (": "write `x.upperAscii()`",
    ". strip (": "write `x.trim()`",
    ". startswith (": "write `x.startsWith('…')`",
    ". endswith (": "write `x.endsWith('…')`",
    # Rego
    ": =": _ASSIGN,
    "=": _ASSIGN,
    "some": _WALK,
    "every": _WALK,
    "[ _ ]": _WALK,
    "count (": _SIZE,
    "startswith (": "write `x.startsWith('…')`",
    "endswith (": "write `x.endsWith('…')`",
    "contains (": "write `x.contains('…')` of a text, or `x in list`",
    "lower (": "write `x.lowerAscii()`",
    "upper (": "write `x.upperAscii()`",
    "concat (": "write `list.join(', ')`",
    "sprintf (": _FORMAT,
    "to_number (": "write `int(x)`, or `quantity(x)` for an amount",
    "regex . match (": _MATCHES,
    "re . match (": _MATCHES,
    "object . get (": _OR_VALUE,
    "input": _OBJECT,
    "data": _PARAMS,
    ";": "write `&&` between conditions",
    # jq
    "|": _PIPE,
    "NAME [ ]": _WALK,
    "START . NAME": "write `object` in front: `object.spec`",
    "select (": "write `list.filter(x, …)`",
    "map (": "write `list.map(x, …)`",
    "test (": _MATCHES,
    "length": _SIZE,
    "tostring": "write `string(x)`",
    # JavaScript
    "== =": "write `==` to compare",
    "!= =": "write `!=` to compare",
    "=>": "write the variable and the expression as arguments: `list.filter(x, x.name == 'a')`",
    "? ?": "write `.?field.orValue(…)` for a default value",
    "? .": "write `object.spec.?field` for a field that may be absent",
    "undefined": _HAS,
    ". includes (": "write `x in list`, or `x.contains('…')` of a text",
    ". some (": _WALK,
    ". every (": _WALK,
    ". toLowerCase (": "write `x.lowerAscii()`",
    ". test (": _MATCHES,
    # the rules of CustomResourceDefinitions, and other habits
    "self": _OBJECT,
    "oldSelf": _OBJECT,
    "request . object": _OBJECT,
    "request . oldObject": _OBJECT,
    "now": _CLOCK,
    "now (": _CLOCK,
    "time . now (": _CLOCK,
    "datetime . now (": _CLOCK,
    "=~": _MATCHES,
    "$": "`$` does not insert a value: read `params`, `variables` or `object`",
}
"""The hint for each habit. The tokens of a habit are separated by spaces."""
_LONGEST: Final = max(len(habit.split()) for habit in HABITS)
_LITERALS: Final[Mapping[str, str]] = {"string": "STRING", "int": "INT"}
UNDECLARED: Final = re.compile(r"undeclared reference to '([^']*)'")
_UNDEFINED: Final = re.compile(r"undefined field '([^']*)'")


def hints_for_issues(
    issues: Iterable[CompileIssue], place: Environment, source: str, facts: Iterable[str] = SHIPPED.fact_names
) -> tuple[str, ...]:
    """Return the different hints for some issues.

    Args:
        issues: the issues of the expression.
        source: the expression.
        place: the environment with the names that the expression may use.
        facts: the names of all facts, including those that the policy does not declare.
    """
    declared = frozenset(facts)
    habits = {habit: text for habit, text in hints_for_habits(source) if habit not in place.variables}
    explained = frozenset(token for habit in habits for token in habit.split())
    hints = [_hint_for_message(each.message, place, declared, explained) for each in issues]
    return tuple(dict.fromkeys(text for text in (*hints, *habits.values()) if text))


def _hint_for_message(message: str, place: Environment, facts: frozenset[str], explained: frozenset[str]) -> str:
    """Return the hint for one issue; "" if no hint is known, or if the name already has a hint."""
    if match := UNDECLARED.match(message):
        if match[1] in explained:
            return ""
        return _hint_for_name(match[1], place, facts)
    if match := _UNDEFINED.match(message):
        fields = {name for structure in place.structures.values() for name in structure.fields}
        return _did_you_mean(match[1], fields)
    return ""


def _hint_for_name(name: str, place: Environment, facts: frozenset[str]) -> str:
    if name in facts:
        return f"`{name}` is a fact, which a policy must declare: add the annotation `{PREFIX}facts: {name}`"
    if name == PROBLEMS:
        return f"`{PROBLEMS}` has what checks find: name groups of checks in the annotation `{PREFIX}checks`"
    if name == "params":
        return "`params` exists only with `spec.paramKind`: add it, or remove `params`"
    return _did_you_mean(name, {*place.variables, *facts, *_function_names(place)})


def _function_names(place: Environment) -> Iterator[str]:
    """Yield the names of functions, without operators."""
    named = (*library.overloads_of_version(place.version), *place.functions)
    yield from (each.name for each in named if each.name[:1].isalpha())


def _did_you_mean(name: str, others: Iterable[str]) -> str:
    near = nearest_name(name, sorted(others))
    return f"did you mean `{near}`?" if near else ""


def hints_for_habits(source: str) -> Iterator[tuple[str, str]]:
    """Yield a hint for each habit of another language in an expression that does not compile."""
    tokens = ["START", *_tokens(source)]
    at = 0
    while at < len(tokens):
        habit = _habit_at(tokens, at)
        if habit:
            yield habit, HABITS[habit]
        at += len(habit.split()) or 1


def _habit_at(tokens: list[str], at: int) -> str:
    """Return the longest habit that begins at a token; "" if there is none."""
    is_field = at > 0 and tokens[at - 1] == "."
    for length in range(_LONGEST, 0, -1):
        part = tokens[at : at + length]
        habit = " ".join(part)
        if habit in HABITS and not (is_field and _is_name(part[0])):
            return habit
        shape = " ".join("NAME" if _is_name(token) else token for token in part)
        if shape in HABITS:
            return shape
    return ""


def _is_name(token: str) -> bool:
    return token.isidentifier() and token not in ("START", *_LITERALS.values())


def _tokens(source: str) -> Iterator[str]:
    """Yield the tokens of an expression in order, including tokens that CEL does not have."""
    columns = tokenize(source)
    columns_of_tokens = zip(columns.offsets, columns.kinds, columns.texts, strict=True)
    tokens = [(offset, _LITERALS.get(kind, text)) for offset, kind, text in columns_of_tokens if text != END]
    others = [(offset, text if text in ("=>", "=~") else text[:1]) for text, offset in columns.unread]
    yield from (token for _, token in sorted(tokens + others))


_NOT_INSTANTIATED = "program instantiation failed: "
"""The beginning of cel-go's error for a program that it cannot create, for example because a constant pattern is
invalid."""


class PolicyCompilation(Struct):
    """The state while one policy is compiled: the environment, to which variables are added, and the errors so far.

    `types` is None before `variables` is declared. `needs` has the names that the expressions read. `rules` has the
    rules of the policy's checks.
    """

    engine: Engine
    version: Version
    has_params: bool
    facts: Sequence[Fact]
    rules: Catalogue = field(default_factory=dict)
    types: dict[str, Type] | None = None
    variables: dict[str, Expression] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    errors: list[FieldError] = field(default_factory=list)
    _reads: dict[str, Reads] = field(default_factory=dict)

    @property
    def fact_names(self) -> frozenset[str]:
        return frozenset(fact.name for fact in self.facts)

    def environment_for_expression(
        self, *, authorizer: bool = True, variables: bool = True, mutation: bool = False
    ) -> Environment:
        """Return the environment of one kind of expression, with the variables that are declared so far."""
        environment = declarations.create_expression_environment(
            self.version, params=self.has_params, authorizer=authorizer, mutation=mutation
        )
        environment = declarations.with_problems(declarations.with_facts(environment, self.facts), self.rules)
        if variables and self.types is not None:
            environment = declarations.with_variables(environment, self.types)
        return environment

    def compile_expression(
        self, path: FieldPath, source: str, place: Environment, expected: Sequence[Type], missing: str = ""
    ) -> Expression:
        """Compile one expression as written. An error is added to `errors`, and the expression also keeps the error."""
        return self._compile(path, source, source, place, expected, missing=missing, shown=source)

    def compile_trimmed_expression(
        self,
        path: FieldPath,
        source: str,
        place: Environment,
        expected: Sequence[Type],
        missing: str = "",
        *,
        shows_all: bool = False,
    ) -> Expression:
        """Compile one expression after trimming white space, as API servers do for some kinds of expressions."""
        text = source.strip()
        return self._compile(path, source, text, place, expected, missing=missing, shown=source if shows_all else text)

    def _compile(
        self,
        path: FieldPath,
        source: str,
        text: str,
        place: Environment,
        expected: Sequence[Type],
        *,
        missing: str,
        shown: str,
    ) -> Expression:
        if not text.strip():
            self.errors.append(required_error(path, missing))
            return Expression(source, error=missing or "no expression")
        try:
            program = self.engine.compile(text, place)
        except CompileError as error:
            if error.issues and error.issues[0].message.startswith(_NOT_INSTANTIATED):
                self.errors.append(internal_error(path, error.issues[0].message))
                return Expression(source, error=error.issues[0].message)
            note = "\n".join(hints_for_issues(error.issues, place, text))
            return self._record_error(path, source, shown, f"compilation failed: {error}", note)
        if expected and program.result not in expected:
            return self._record_error(path, source, shown, result_type_error(program.result, expected))
        self.needs |= program.variable_names
        return Expression(source, program)

    def _record_error(self, path: FieldPath, source: str, shown: str, detail: str, note: str = "") -> Expression:
        self.errors.append(replace(invalid_error(path, shown, detail), note=note))
        return Expression(source, error=detail)

    def declare_variable(self, name: str, expression: Expression, result: Type) -> None:
        """Declare a variable for the expressions after it."""
        self._reads[name] = self.fact_fields_read_by(expression)
        self.variables[name] = expression
        self.types = {**(self.types or {}), name: declarations.variable_type(result)}

    def fact_fields_read_by(self, expression: Expression) -> Reads:
        """Return the fields of facts and problems that an expression reads, directly or through variables."""
        if not (self.facts or self.rules) or expression.program is None:
            return {}
        names_of_facts = self.fact_names | {*([PROBLEMS] if self.rules else ())}
        fields_by_fact: dict[str, frozenset[str]] = {}
        for name, fields in expression.program.paths_read().fields_by_variable.items():
            if name in names_of_facts:
                fields_by_fact[name] = fields_by_fact.get(name, frozenset()) | fields
            elif name == "variables":
                reads_of_variables = (
                    self._reads if WHOLE in fields else {each: self._reads.get(each, {}) for each in fields}
                )
                for fact, own in (pair for each in reads_of_variables.values() for pair in each.items()):
                    fields_by_fact[fact] = fields_by_fact.get(fact, frozenset()) | own
        return dict(sorted(fields_by_fact.items()))
