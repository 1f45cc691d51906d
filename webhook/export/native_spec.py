"""Rewrites a policy about Pods to a policy about pod templates. `object` becomes the template as a Pod.

For a kind with one template at a fixed place, the variable `pod` has the template, and the rest stays unchanged. For
kinds with several templates, a variable has the list of templates, and each rule is about all templates. Variables that
differ between templates are written out in the rules. The message is about the first template that breaks the rule.
If the messageExpression fails, the message lacks the path of the template.

If a rewritten part could change the verdict, the policy is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import replace_spec_prefixes
from webhook.cel.environment import Environment
from webhook.cel.syntax import rewrite
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text, string_literal
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Node, Select, children
from webhook.export import template_expressions as templates
from webhook.workloads.rows import PodSetRule, Row

_GLOBALS = frozenset({"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"})
_DEEPEST = 200  # Python's stack allows three times this depth


class PolicyRewriteError(Exception):
    """The policy cannot be rewritten for pod templates."""


@dataclass(frozen=True, slots=True)
class UnusedVariableNames:
    """Variable names that no expression of the policy uses."""

    pod: str
    old: str
    template: str
    message: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ParsedPolicySpec:
    """A policy's spec with its parsed expressions.

    Attributes:
        uses_old: whether an expression reads `oldObject`.
        names_namespace: whether an expression may read metadata.namespace of a Pod.
        drops_nulls: whether the CEL of the version can remove null fields.
    """

    spec: JSON
    read: Callable[[str], Node]
    names: UnusedVariableNames
    uses_old: bool
    names_namespace: bool
    drops_nulls: bool
    deletes: bool

    @property
    def workload_expression(self) -> str:
        """Return CEL for the object with the templates. On DELETE, it is the old object."""
        return "dyn(object == null ? oldObject : object)" if self.deletes else "dyn(object)"

    def virtual_pod_expression(self, template: str, *, bare: bool) -> str:
        """Return CEL for the template as a Pod, with the fields that the policy may read."""
        return templates.virtual_pod_expression_of_template(
            template, bare=bare, named=self.names_namespace, drops_nulls=self.drops_nulls
        )


def parse_expressions(spec: JSON, version: tuple[int, int], *, deletes: bool) -> ParsedPolicySpec:
    """Parse the expressions of a policy that compiles.

    Raises:
        PolicyRewriteError: an expression cannot be rewritten.
    """
    environment = Environment(version=version)
    trees = [parse(expression, environment) for expression in _all_expressions(spec)]
    if any(rewrite.nesting_depth(tree) > _DEEPEST for tree in trees):
        raise PolicyRewriteError(f"an expression is nested more than {_DEEPEST} levels deep")
    if hidden := sorted(_GLOBALS & {name for tree in trees for name in rewrite.macro_bound_names(tree)}):
        raise PolicyRewriteError(f"a macro has a variable `{hidden[0]}`, which hides the variable of the policy")
    used = frozenset(name for tree in trees for name in rewrite.all_names(tree))
    if any(name.startswith(".") and name[1:] in _GLOBALS for name in used):
        raise PolicyRewriteError("an expression has a name that begins with a dot")
    return ParsedPolicySpec(
        spec=spec,
        read=partial(parse, environment=environment),
        names=_choose_unused_names(used | _GLOBALS, spec),
        uses_old="oldObject" in used,
        names_namespace=any(map(_may_read_namespace, trees)),
        drops_nulls=environment.is_macro_call("transformMap", 4, member=True),
        deletes=deletes,
    )


def _all_expressions(spec: JSON) -> Iterator[str]:
    for part in ("matchConditions", "variables", "validations"):
        for each in spec.get(part) or ():
            yield each["expression"]
            if each.get("messageExpression"):
                yield each["messageExpression"]
    for each in spec.get("auditAnnotations") or ():
        yield each["valueExpression"]


def _choose_unused_names(names_in_expressions: frozenset[str], spec: JSON) -> UnusedVariableNames:
    used = {*names_in_expressions, *(each["name"] for each in spec.get("variables") or ())}

    def free(name: str) -> str:
        free = next(each for each in (name, *(f"{name}{number}" for number in range(1, 10_000))) if each not in used)
        used.add(free)
        return free

    pod, old, template, message = map(free, ("pod", "oldPod", "t", "text"))
    # a variable keeps its name, unless a macro uses the same name
    local = {}
    for each in spec.get("variables") or ():
        used.discard(each["name"]) if each["name"] not in names_in_expressions else None
        local[each["name"]] = free(each["name"])
    return UnusedVariableNames(pod, old, template, message, local)


def _may_read_namespace(tree: Node) -> bool:
    """Return whether an expression may read metadata.namespace, alone or in a larger value."""
    if isinstance(tree, Ident):
        return tree.name in ("object", "oldObject")
    if _reads_no_namespace(tree):
        return False
    return any(map(_may_read_namespace, children(tree)))


def _reads_no_namespace(node: Node) -> bool:
    if isinstance(node, Call) and node.function in ("_==_", "_!=_"):
        kinds = {type(each) for each in node.arguments}
        return kinds == {Ident, Literal}
    if not isinstance(node, Select | Has):
        return False
    if isinstance(node.operand, Ident):
        return isinstance(node, Has) or node.field != "metadata"
    operand = node.operand
    return isinstance(operand, Select) and isinstance(operand.operand, Ident) and node.field != "namespace"


def rewrite_spec_for_one_template(policy: ParsedPolicySpec, rule: PodSetRule) -> JSON:
    """Return the spec for kinds with one pod template, at the path of `rule`."""
    names, at = policy.names, string_literal(rule.template)
    pod_expression = partial(_virtual_pod_expression, policy, rule)
    objects = {"object": pod_expression("dyn(object)"), "oldObject": pod_expression("dyn(oldObject)")}
    local = {"object": names.pod, "oldObject": names.old}
    as_variable = {name: _build_select_node("variables", each) for name, each in local.items()}
    as_name = {name: Ident(0, each) for name, each in local.items()}

    def condition(written: str) -> str:
        tree = policy.read(written)
        written_out = source_text(_with_replaced_names(tree, as_name))
        for name in sorted(rewrite.all_names(tree) & objects.keys()):
            written_out = f"[{objects[name]}].exists({local[name]}, {written_out})"
        return written_out if rewrite.all_names(tree) & objects.keys() else written

    def rewrite_expression(written: str) -> str:
        tree = policy.read(written)
        return (
            source_text(_with_replaced_names(tree, as_variable))
            if rewrite.all_names(tree) & objects.keys()
            else written
        )

    def messages(each: JSON) -> JSON:
        rewritten = {"message": _message_with_template_path(_static_message_of_validation(each), rule)}
        if each.get("messageExpression"):
            rewritten["messageExpression"] = _message_expression_with_template_path(
                policy, rewrite_expression(each["messageExpression"]), '""', at, rule.embeds
            )
        return rewritten

    spec = policy.spec
    variables = [{"name": local[name], "expression": objects[name]} for name in objects]
    return _replace_parts_of_spec(
        spec,
        conditions=[
            {
                "name": "has-pod-template",
                "expression": templates.template_exists_expression(policy.workload_expression, rule),
            },
            *({**each, "expression": condition(each["expression"])} for each in spec.get("matchConditions") or ()),
        ],
        variables=[
            *(variables if policy.uses_old else variables[:1]),
            *({**each, "expression": rewrite_expression(each["expression"])} for each in spec.get("variables") or ()),
        ],
        validations=[
            {**each, "expression": rewrite_expression(each["expression"]), **messages(each)}
            for each in spec.get("validations") or ()
        ],
        audits=[
            {**each, "valueExpression": rewrite_expression(each["valueExpression"])}
            for each in spec.get("auditAnnotations") or ()
        ],
    )


def _virtual_pod_expression(policy: ParsedPolicySpec, rule: PodSetRule, value: str) -> str:
    """Return CEL for an object's template as a Pod; null without the template."""
    pod = policy.virtual_pod_expression("t", bare=rule.embeds == "podSpec")
    exists, template = (
        templates.template_exists_expression(value, rule),
        templates.field_expression(value, rule.template),
    )
    return f"{exists} ? [{template}].map(t, {pod})[0] : dyn(null)"


def rewrite_spec_for_several_templates(policy: ParsedPolicySpec, rows: Sequence[Row]) -> JSON:
    """Return the spec for kinds with several templates. All templates are PodSpecs, or all are PodTemplates.

    Raises:
        PolicyRewriteError: a part has one value for the object, and would need a value for each template.
    """
    return _SeveralTemplatesRewriter(policy, rows).rewritten_spec()


class _SeveralTemplatesRewriter:
    def __init__(self, policy: ParsedPolicySpec, rows: Sequence[Row]) -> None:
        self._policy = policy
        self._names = policy.names
        self._embeds = rows[0].podSets[0].embeds
        template = policy.names.template
        self._objects = {
            "object": _build_select_node(template, "pod"),
            "oldObject": _build_select_node(template, "old"),
        }
        trees = {each["name"]: policy.read(each["expression"]) for each in policy.spec.get("variables") or ()}
        self._inliner = rewrite.VariableInliner(trees, policy.names.variables)
        self._all = self._template_list_expression(rows)
        self._holds = " && ".join(
            f"({self._rewrite_expression(each['expression'])})" for each in policy.spec.get("matchConditions") or ()
        )

    def rewritten_spec(self) -> JSON:
        spec, name = self._policy.spec, self._names.template
        if spec.get("auditAnnotations"):
            raise PolicyRewriteError("an audit annotation has one value, not one for each template")
        condition = f"{self._all}.exists({name}, {self._holds})"
        return _replace_parts_of_spec(
            spec,
            conditions=[{"name": "some-pod-template", "expression": condition}] if self._holds else [],
            variables=[{"name": "templates", "expression": self._all}],
            validations=list(map(self._rewrite_validation, spec.get("validations") or ())),
            audits=[],
        )

    def _template_list_expression(self, rows: Sequence[Row]) -> str:
        """Return CEL for a list of maps with `at`, `pod` and `old`, one for each template."""
        policy, bare = self._policy, self._embeds == "podSpec"
        pod = policy.virtual_pod_expression("e.template", bare=bare)
        now = f"object == null ? dyn(null) : {pod}" if policy.deletes else pod
        templates_text = templates.templates_expression(policy.workload_expression, rows)
        if not policy.uses_old:
            return f'{templates_text}.map(e, {{"at": dyn(e.at), "pod": {now}}})'
        same = "before.filter(b, b.name == e.name)"
        last = policy.virtual_pod_expression("l[l.size() - 1].template", bare=bare)
        old = f"[{same}].map(l, l.size() == 0 ? dyn(null) : {last})[0]"
        entry = f'{{"at": dyn(e.at), "pod": {now}, "old": {old}}}'
        old_templates = templates.templates_expression("dyn(oldObject)", rows)
        return f"[{old_templates}].map(before, {templates_text}.map(e, {entry}))[0]"

    def _rewrite_expression(self, written: str) -> str:
        tree = self._policy.read(written)
        if any(isinstance(each, Ident) and each.name == "variables" for each in _nodes_except_variable_reads(tree)):
            raise PolicyRewriteError("an expression uses `variables` without selecting a variable by its name")
        try:
            return source_text(_with_replaced_names(self._inliner.inline(tree), self._objects))
        except rewrite.RewriteTooLong:
            raise PolicyRewriteError("its variables refer to each other too often to be written out") from None

    def _rewrite_validation(self, each: JSON) -> JSON:
        name, rule = self._names.template, self._rewrite_expression(each["expression"])
        test = f"{self._holds} ? {rule} : true" if self._holds else rule
        first = f"variables.templates.filter({name}, !({test}))[0]"
        at, fixed = f"string({name}.at)", string_literal(_static_message_of_validation(each))
        message_expression = _static_message_expression_at_path(_static_message_of_validation(each), at, self._embeds)
        if each.get("messageExpression"):
            message_expression = _message_expression_with_template_path(
                self._policy, self._rewrite_expression(each["messageExpression"]), message_expression, at, self._embeds
            )
        return {
            **each,
            "expression": f"variables.templates.all({name}, {test})",
            "message": _static_message_of_validation(each),
            "messageExpression": f"[{first}].map({name}, {message_expression})[0]" if fixed else "",
        }


def _nodes_except_variable_reads(tree: Node) -> Iterator[Node]:
    """Yield the nodes of a tree, except `variables.name` and the nodes in it."""
    if rewrite.variable_read_by(tree):
        return
    yield tree
    for child in children(tree):
        yield from _nodes_except_variable_reads(child)


def _with_replaced_names(tree: Node, replacements: Mapping[str, Node]) -> Node:
    """Replace names by other trees. No macro may bind these names."""
    return rewrite.replace_nodes(tree, lambda node: replacements.get(node.name) if isinstance(node, Ident) else None)


def _build_select_node(name: str, field: str) -> Node:
    return Select(0, Ident(0, name), field)


def _replace_parts_of_spec(spec: JSON, *, conditions: JSON, variables: JSON, validations: JSON, audits: JSON) -> JSON:
    rewritten = {
        "matchConditions": conditions,
        "variables": variables,
        "validations": validations,
        "auditAnnotations": audits,
    }
    unchanged = {key: value for key, value in spec.items() if key not in rewritten}
    return {**unchanged, **{key: value for key, value in rewritten.items() if value}}


def _static_message_of_validation(each: JSON) -> str:
    """Return the message that a validation has without a messageExpression (messages.message)."""
    return str(each.get("message") or "").strip() or f"failed expression: {each['expression'].strip()}"


def _message_with_template_path(message: str, rule: PodSetRule) -> str:
    path, rest = paths.split_off_leading_path(message)
    if not path:
        return f"{rule.template}: {message}"
    path_in_template = path if rule.embeds != "podSpec" else path[1:] if path[0] == "spec" else ()
    spec = rule.template if rule.embeds == "podSpec" else f"{rule.template}.spec"
    return paths.path_as_text((*paths.parse_path(rule.template), *path_in_template)) + replace_spec_prefixes(rest, spec)


def _static_message_expression_at_path(message: str, at: str, embeds: str) -> str:
    """Return a validation's message as CEL, with the path of a template. `at` is an expression."""
    path, rest = paths.split_off_leading_path(message)
    path_in_template = path if embeds != "podSpec" else path[1:] if path[:1] == ("spec",) else ()
    field_text = paths.path_as_text(path_in_template)
    joined = f".{field_text}{rest}" if field_text and not field_text.startswith("[") else f"{field_text}{rest}"
    further = (
        templates.replace_calls_for_further_paths(at, bare=embeds == "podSpec") if path and "spec." in rest else ""
    )
    return f"{at} + {string_literal(joined if path else f': {message}')}{further}"


def _message_expression_with_template_path(
    policy: ParsedPolicySpec, written: str, fallback: str, at: str, embeds: str
) -> str:
    """Return a messageExpression with the template's path. `fallback` replaces a result that is not a usable text."""
    name = policy.names.message
    with_path = templates.message_with_path_expression(name, at, bare=embeds == "podSpec")
    return f'[({written}).trim()].map({name}, {name} == "" || {name}.contains("\\n") ? {fallback} : {with_path})[0]'
