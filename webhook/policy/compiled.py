"""A policy ready to be asked: programs instead of expressions, predicates instead of selectors. Immutable.

Knows what a policy consists of; compile.py makes it, matching, validating and mutating use it. An expression that did
not compile stays here with its error, so that the policy's failurePolicy can speak for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from webhook.attributes import GroupVersionKind
from webhook.cel import Program
from webhook.decisions import Decision, ValidationAction
from webhook.policy.matching import Criteria
from webhook.policy.selectors import Selector


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One expression of a policy: its text as error messages quote it, and its program or why there is none."""

    source: str
    program: Program | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """One matchCondition."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One validation. `reason` and `code` are what a denial carries; `facts` are those that the rule reads."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str
    code: int
    facts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class AuditRule:
    """One auditAnnotation."""

    key: str
    expression: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One mutation."""

    kind: Literal["ApplyConfiguration", "JSONPatch"]
    expression: Expression


@dataclass(frozen=True, slots=True, eq=False)
class ParamSource:
    """The paramRef of a binding."""

    name: str
    namespace: str
    selector: Selector | None
    denies_absence: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Binding:
    """One binding: where its policy applies, with which parameters, and what a failure does.

    `admits` are the decisions of rules that hold, without parameters and on the object itself: made once, given often.
    """

    name: str
    policy: str
    criteria: Criteria | None
    param_source: ParamSource | None
    actions: tuple[ValidationAction, ...] = ()
    admits: tuple[Decision, ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Policy:
    """A ValidatingAdmissionPolicy (rules, audits) or a MutatingAdmissionPolicy (changes, reinvokes) with its bindings.

    `expands` is the annotation `expand: pods`. `phase` is where a validating policy speaks. `needs` are the names that
    any of its expressions reads, so that nothing is looked up for nothing. `messages` is how many rules
    have a messageExpression. `obstacles` say why the policy cannot be installed natively.
    """

    kind: Literal["validating", "mutating"]
    name: str
    file: str = ""
    annotations: Mapping[str, str]
    is_fail: bool
    param_kind: GroupVersionKind | None
    criteria: Criteria
    conditions: tuple[Condition, ...]
    variables: Mapping[str, Expression]
    rules: tuple[Rule, ...] = ()
    audits: tuple[AuditRule, ...] = ()
    changes: tuple[Change, ...] = ()
    reinvokes: bool = False
    messages: int = 0
    bindings: tuple[Binding, ...] = ()
    needs: frozenset[str] = frozenset()
    facts: tuple[str, ...] = ()
    expands: bool = False
    phase: Literal["validate", "mutate", "both"] = "validate"
    severity: str = ""
    category: str = ""
    docs: str = ""
    obstacles: tuple[str, ...] = ()

    def expressions(self) -> Iterator[Expression]:
        """Every expression of the policy."""
        yield from (condition.expression for condition in self.conditions)
        yield from self.variables.values()
        for rule in self.rules:
            yield rule.expression
            if rule.message_expression is not None:
                yield rule.message_expression
        yield from (audit.expression for audit in self.audits)
        yield from (change.expression for change in self.changes)
