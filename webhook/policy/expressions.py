"""Compiles one expression of a policy with the variables of its place, and words errors as the API server does.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/compile.go (CompileCELExpression) and composition.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.paths import FieldPath
from webhook.cel import Engine
from webhook.cel.check.checked import result_type_error
from webhook.cel.check.reads import WHOLE
from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Version
from webhook.cel.types import Type
from webhook.errors import CompileError
from webhook.facts.subject import Fact
from webhook.manifests.field_errors import FieldError, internal_error, invalid_error, required_error
from webhook.policy import declarations
from webhook.policy.compile_hints import hints_for_issues
from webhook.policy.compiled import Expression, Reads
from webhook.rules.catalogue import Catalogue
from webhook.rules.declarations import PROBLEMS

_NOT_INSTANTIATED = "program instantiation failed: "
"""The beginning of cel-go's error for a program that it cannot create, such as a constant pattern that is invalid."""


class PolicyCompilation(Struct):
    """The compilation of one policy: the environment, which grows with its variables, and the errors so far.

    `types` is None as long as there is no `variables`. `needs` are the names that the expressions read, `rules` those
    that the checks of the policy may find broken.
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
        """Return the names of facts."""
        return frozenset(fact.name for fact in self.facts)

    def environment_for_expression(
        self, *, authorizer: bool = True, variables: bool = True, mutation: bool = False
    ) -> Environment:
        """Return the environment of one kind of expression, with the variables declared so far."""
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
        """Compile one expression as written; an error is added to the walk and kept in the expression."""
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
        """Compile one expression without white space at its ends, as the API server does for some."""
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
        """Return the fields of facts and problems that an expression reads, itself or through its variables."""
        if not (self.facts or self.rules) or expression.program is None:
            return {}
        known = self.fact_names | {*([PROBLEMS] if self.rules else ())}
        read: dict[str, frozenset[str]] = {}
        for name, fields in expression.program.paths_read().fields_by_variable.items():
            if name in known:
                read[name] = read.get(name, frozenset()) | fields
            elif name == "variables":
                inner = self._reads if WHOLE in fields else {each: self._reads.get(each, {}) for each in fields}
                for fact, own in (pair for each in inner.values() for pair in each.items()):
                    read[fact] = read.get(fact, frozenset()) | own
        return dict(sorted(read.items()))
