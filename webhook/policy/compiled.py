"""The data of a compiled policy, with programs for expressions and predicates for selectors.

All values are immutable. compile.py creates the values, and the modules that match, validate and mutate use them. An
expression that did not compile keeps its error, so that the policy's failurePolicy decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cel import Program
from webhook.manifests.label_selectors import Selector
from webhook.policy.declarations import REQUEST_RESOURCE
from webhook.policy.matching import Criteria
from webhook.rules.catalogue import Catalogue
from webhook.rules.decisions import Decision, DenialReason, ValidationAction
from webhook.rules.declarations import PROBLEMS
from webhook.rules.rule import Rule

BOOKKEEPING: Final = frozenset(("status", "finalizers", "managedFields"))
"""Fields with which controllers and API servers track an object."""
Reads: TypeAlias = Mapping[str, frozenset[str]]
"""The fields that are read of each fact, by the name of the fact. The field "" means the whole fact."""


class Expression(Struct, frozen=True, eq=False):
    """One expression of a policy: its text for error messages, and its program or its compilation error."""

    source: str
    program: Program | None = None
    error: str = ""


class Condition(Struct, frozen=True, eq=False):
    """One matchCondition."""

    name: str
    expression: Expression


class Validation(Struct, frozen=True, eq=False):
    """One validation.

    `denial` is the reason for a denial. `facts` has the fields of facts and problems that the expression reads.
    `lists_problems`: the messageExpression returns a list of problems instead of a text.
    """

    expression: Expression
    message: str
    message_expression: Expression | None
    denial: DenialReason
    facts: Reads
    lists_problems: bool = False


class AuditAnnotation(Struct, frozen=True, eq=False):
    """One auditAnnotation."""

    key: str
    expression: Expression


class Mutation(Struct, frozen=True, eq=False):
    """One mutation."""

    kind: Literal["ApplyConfiguration", "JSONPatch"]
    expression: Expression


class ParamSource(Struct, frozen=True):
    """The paramRef of a binding."""

    name: str
    namespace: str
    selector: Selector | None
    denies_absence: bool


class Binding(Struct, frozen=True, eq=False, kw_only=True):
    """One binding: where its policy applies, the parameters, and the actions of a failure.

    `admits` has the decision for each validation that is true, for the object itself and without a parameter. These
    decisions are needed often, so they are created once.
    """

    name: str
    policy: str
    criteria: Criteria | None
    param_source: ParamSource | None
    actions: tuple[ValidationAction, ...] = ()
    admits: tuple[Decision, ...] = ()
    file: str = ""


class MatchConditions(Struct, frozen=True, eq=False, kw_only=True):
    """The matchConditions of a policy, and the variables that they read.

    `spec_changes` is the condition of the annotation `updates: spec`: all policies with this annotation share its
    result for an object.
    """

    conditions: tuple[Condition, ...] = ()
    needs: frozenset[str] = frozenset()
    spec_changes: Condition | None = None


AUTHORIZER: Final = frozenset(("authorizer", REQUEST_RESOURCE))

T = TypeVar("T")


class DeferredPart(Generic[T]):
    """A part of a policy that is compiled on first use. If two threads compile the part at the same time, both results
    are usable.
    """

    __slots__ = ("_compile", "_part")

    def __init__(self, compile_part: Callable[[], T]) -> None:
        self._compile = compile_part
        self._part: T | None = None

    def __call__(self) -> T:
        """Return the compiled part."""
        part = self._part
        if part is None:
            part = self._part = self._compile()
        return part


class PolicyBody(Struct, frozen=True, eq=False, kw_only=True):
    """The expressions of a policy except its matchConditions.

    `messages`: the number of validations with a messageExpression. `needs`: the names that the expressions read; other
    values are not computed.
    """

    variables: Mapping[str, Expression]
    rules: tuple[Validation, ...] = ()
    audits: tuple[AuditAnnotation, ...] = ()
    changes: tuple[Mutation, ...] = ()
    needs: frozenset[str] = frozenset()
    messages: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Policy:
    """A ValidatingAdmissionPolicy (rules, audits) or a MutatingAdmissionPolicy (changes, reinvokes) with its bindings.

    The fields here and `match_conditions` decide whether the policy applies. The other expressions are in `body`, which
    most requests never need.

    Args:
        reports_problems: the only validation is `problems.size() == 0` with the messageExpression `problems`, so that
            the checks decide, without CEL.
        expands: the annotation `expand` has `pods`.
        enters: the annotation `expand` has `objects`.
        reads_patches: the annotation `expand` has `patches`.
        reads_resources: the annotation `expand` has `resources`.
        phase: the phase of a validating policy.
        is_registered: webhook configurations include the resources of the policy.
        warns_about_stored: a problem only warns if the stored object already has the problem.
        skips_bookkeeping: updates of only BOOKKEEPING fields, and deletions, are skipped unless the policy names the
            field or DELETE.
        is_about_specs: the policy has the annotation `updates: spec`.
        named_bookkeeping: the fields of BOOKKEEPING that the policy names.
        concerns: the policy applies only to Pods with one of these parts.
        any_pod: the rules of the policy that are also about Pods without these parts.
        judges_types: the checks report values of wrong types.
        needs_schemas: the mutations of the policy need the schemas of custom kinds.
        checks: the groups of checks that the policy uses.
        catalogue: the rules of these groups.
        named: the rules that rules.yaml declares for its validations.
        missing: the result of a rule that needs a missing object.
        mentions_namespace: the text of an expression contains `namespaceObject`.
        computed: the names of values that are computed only when an expression reads them.
        obstacles: the reasons why the policy cannot be installed natively.
    """

    kind: Literal["validating", "mutating"]
    name: str
    file: str = ""
    annotations: Mapping[str, str]
    is_fail: bool
    param_kind: GroupVersionKind | None
    criteria: Criteria
    match_conditions: DeferredPart[MatchConditions]
    body: DeferredPart[PolicyBody]
    rule_count: int = 0
    reports_problems: bool = False
    reinvokes: bool = False
    bindings: tuple[Binding, ...] = ()
    facts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    missing: Literal["admit", "deny", "warn"] = "admit"
    catalogue: Catalogue = field(default_factory=dict)
    named: tuple[Rule, ...] = ()
    expands: bool = False
    enters: bool = False
    reads_patches: bool = False
    reads_resources: bool = False
    judges_types: bool = False
    phase: Literal["validate", "mutate", "both"] = "validate"
    is_registered: bool = True
    warns_about_stored: bool = False
    skips_bookkeeping: bool = False
    is_about_specs: bool = False
    named_bookkeeping: frozenset[str] = frozenset()
    concerns: tuple[str, ...] = ()
    any_pod: tuple[str, ...] = ()
    severity: str = ""
    category: str = ""
    docs: str = ""
    obstacles: tuple[str, ...] = ()
    mentions_namespace: bool = True
    needs_schemas: bool = False
    computed: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        problems = (PROBLEMS,) if self.checks else ()
        object.__setattr__(self, "computed", frozenset(("object", "oldObject", "request", *self.facts, *problems)))

    @property
    def ignores_bookkeeping(self) -> bool:
        """Return whether the policy skips updates that change only fields of BOOKKEEPING. Native policies get every
        update.
        """
        return self.skips_bookkeeping or self.is_about_specs or self.reports_problems

    def rule_id(self, index: int | None) -> str:
        """Return the id of a validation. Without an id, or if `index` is None, return the policy's name."""
        return self.named[index].id if index is not None and self.named else self.name

    def severity_of_rule(self, code: str) -> str:
        """Return the severity of a rule; the severity of the policy if the rule is not in the catalogue."""
        rule = self.catalogue.get(code)
        return (rule and rule.severity) or self.severity

    @property
    def reads_merged_pods(self) -> bool:
        """Return whether the policy is evaluated on pods that are not in the object, such as the pods of TrainJobs.
        Return False for checks, and for policies that read patches or resources, because these read the object
        itself.
        """
        reads_parts = self.checks or self.reads_patches or self.reads_resources
        return self.expands and not reads_parts

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the matchConditions. The condition of `updates: spec` is the first."""
        compiled = self.match_conditions()
        return compiled.conditions if compiled.spec_changes is None else (compiled.spec_changes, *compiled.conditions)

    @property
    def variables(self) -> Mapping[str, Expression]:
        return self.body().variables

    @property
    def rules(self) -> tuple[Validation, ...]:
        return self.body().rules

    @property
    def audits(self) -> tuple[AuditAnnotation, ...]:
        return self.body().audits

    @property
    def changes(self) -> tuple[Mutation, ...]:
        return self.body().changes

    @property
    def names_read_by_body(self) -> frozenset[str]:
        """Return the names that the expressions read, except the matchConditions."""
        return self.body().needs

    @property
    def uses_authorizer(self) -> bool:
        return not AUTHORIZER.isdisjoint(self.names_read_by_body | self.match_conditions().needs)

    def expressions(self) -> Iterator[Expression]:
        yield from (expression for _, expression in self.expressions_with_paths())

    def expressions_with_paths(self) -> Iterator[tuple[str, Expression]]:
        """Yield every expression of the policy with its path in the manifest."""
        if (added := self.match_conditions().spec_changes) is not None:
            yield "metadata.annotations", added.expression
        for index, condition in enumerate(self.match_conditions().conditions):
            yield f"spec.matchConditions[{index}].expression", condition.expression
        for index, variable in enumerate(self.variables.values()):
            yield f"spec.variables[{index}].expression", variable
        for index, rule in enumerate(self.rules):
            yield f"spec.validations[{index}].expression", rule.expression
            if rule.message_expression is not None:
                yield f"spec.validations[{index}].messageExpression", rule.message_expression
        for index, audit in enumerate(self.audits):
            yield f"spec.auditAnnotations[{index}].valueExpression", audit.expression
        for index, change in enumerate(self.changes):
            kind = change.kind[0].lower() + change.kind[1:]
            yield (
                f"spec.mutations[{index}].{'jsonPatch' if kind == 'jSONPatch' else kind}.expression",
                change.expression,
            )
