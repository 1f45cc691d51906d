"""Makes CEL expressions that find the pod templates of a kind and convert each template to a Pod.

API servers evaluate these expressions. The results equal the Pods of evaluation/request_objects.py. Null counts as
absent down to the fields of a PodSpec. A template is a map. Metadata without a namespace gets the namespace of the
request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from webhook.cel.syntax.text import string_literal
from webhook.workloads.rows import PodSetRule, Row

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EACH = re.compile(r"\[\]|\{\}")
_KEY = r"^[A-Za-z_$][A-Za-z0-9_$-]*$"
_STEP = r"(\.[A-Za-z_$][A-Za-z0-9_$-]*|\[(\"([^\"\\]|\\.)*\"|[^\]\"]+)\])"
_ROOT = "(apiVersion|kind|metadata|spec|status|data|stringData|binaryData|webhooks)"
_INDEXED = rf"[A-Za-z_$][A-Za-z0-9_$-]*{_STEP}*\[(0|[1-9][0-9]*)\]{_STEP}*:?"
_NAMED = (
    'request.?namespace.orValue("") == "" || optional.ofNonZeroValue(m.?namespace.orValue(null)).hasValue() ? dyn(m) : '
    'dyn((m.map(k, k).filter(k, k != "namespace") + [dyn("namespace")]).transformMapEntry(i, k, '
    '{k: k == "namespace" ? dyn(request.namespace) : dyn(m[k])}))'
)
"""CEL for the metadata `m`. Metadata without a namespace gets the namespace of the request."""
_WITHOUT_NULLS = ".transformMap(k, v, v != null, v)"
_BEFORE_OTHERS = ("; ", ", ", "likewise ")
"""The texts before further paths in a message with several paths."""
PATH = rf"^({_ROOT}({_STEP}*:|{_STEP}+)|{_INDEXED})(\s|$)"
"""Matches a leading path as paths.split_off_leading_path does."""


def field_expression(value: str, path: str) -> str:
    """Return CEL for a field of a value; null if a step of the path is absent or null."""
    return f"{value}{_optional_steps(path)}.orValue(null)" if path else value


def _optional_steps(path: str) -> str:
    return "".join(
        f".?{step}" if _WORD.fullmatch(step) else f"[?{string_literal(step)}]" for step in path.split(".") if step
    )


def template_exists_expression(value: str, rule: PodSetRule) -> str:
    """Return CEL that says whether an object has the template of a rule with a fixed path."""
    return " && ".join(
        (f"type({field_expression(value, rule.template)}) == map", *_condition_expressions_of_rule(value, rule))
    )


def _condition_expressions_of_rule(value: str, rule: PodSetRule) -> list[str]:
    guards = [f"({_is_set_expression(value, rule.when)})"] if rule.when else []
    return [*guards, f"!({_is_set_expression(value, rule.unless)})"] if rule.unless else guards


def _is_set_expression(value: str, path: str) -> str:
    return f"{field_expression(value, path)} != null && {field_expression(value, path)} != false"


def virtual_pod_expression_of_template(template: str, *, bare: bool, named: bool, drops_nulls: bool) -> str:
    """Return CEL for a template as a Pod.

    Args:
        template: an expression for the template.
        bare: whether the template is a PodSpec.
        named: whether the policy may read metadata.namespace.
        drops_nulls: whether the CEL of the cluster's version can remove null fields of the PodSpec.
    """
    spec_or_empty = (
        f"dyn({template})" if bare else _map_or_empty_expression(template, "spec")
    )  # a template with a default may have the type null
    spec = f"dyn({spec_or_empty}{_WITHOUT_NULLS if drops_nulls else ''})"
    metadata = "{}" if bare else _map_or_empty_expression(template, "metadata")
    if named:
        metadata = f"[dyn({metadata})].map(m, {_NAMED})[0]"
    return f'dyn({{"apiVersion": dyn("v1"), "kind": dyn("Pod"), "metadata": dyn({metadata}), "spec": {spec}}})'


def _map_or_empty_expression(value: str, name: str) -> str:
    return f"{value}.?{name}.optFlatMap(v, optional.ofNonZeroValue(v)).orValue(dyn({{}}))"


def templates_expression(value: str, rows: Iterable[Row]) -> str:
    """Return CEL for the templates of an object of these kinds: a list of maps with `at`, `name` and `template`."""
    kinds: dict[PodSetRule, list[str]] = {}
    for row in rows:
        for rule in row.podSets:
            kinds.setdefault(rule, []).append(f"{row.group}/{row.kind}")
    parts = [
        f"({_kind_is_one_of_expression(names)} ? {_templates_of_rule_expression(value, rule)} : [])"
        for rule, names in kinds.items()
    ]
    return f"({' + '.join(parts)}).filter(e, type(e.template) == map)"


def _kind_is_one_of_expression(kinds: Sequence[str]) -> str:
    return f'request.kind.group + "/" + request.kind.kind in [{", ".join(map(string_literal, kinds))}]'


def _templates_of_rule_expression(value: str, rule: PodSetRule) -> str:
    each = _EACH.search(rule.template)
    if each is None:
        entry = _template_entry_expression(
            string_literal(rule.template), string_literal(rule.name), field_expression("o", rule.template)
        )
        guards = " && ".join(_condition_expressions_of_rule("o", rule))
        return f"[{value}]{f'.filter(o, {guards})' if guards else ''}.map(o, {entry})"
    before, after = rule.template[: each.start()], rule.template[each.end() :].lstrip(".")
    if _EACH.search(after):
        return _nested_templates_expression(value, before, replace(rule, template=after))
    collection, rest = f"{value}{_optional_steps(before)}", string_literal(f".{after}") if after else '""'
    template = field_expression("e", after)
    some = "".join(f"{guard}, " for guard in [" && ".join(_condition_expressions_of_rule("e", rule))] if guard)
    if each[0] == "[]":
        name = f"string(e{_optional_steps(rule.named)}.optFlatMap(v, optional.ofNonZeroValue(v)).orValue(i))"
        at = f'{string_literal(f"{before}[")} + string(i) + "]" + {rest}'
        entry = _template_entry_expression(at, _template_name_expression(rule, name), template)
        return f"{_value_of_type_or_empty_expression(collection, 'list', '[]')}.transformList(i, e, {some}{entry})"
    key = f'(string(i).matches({string_literal(_KEY)}) ? "." + string(i) : "[\\"" + string(i) + "\\"]")'
    entry = _template_entry_expression(
        f"{string_literal(before)} + {key} + {rest}",
        _template_name_expression(rule, "string(i).lowerAscii()"),
        template,
    )
    return f"{_value_of_type_or_empty_expression(collection, 'map', '{}')}.transformList(i, e, {some}{entry})"


def _nested_templates_expression(value: str, before: str, rule: PodSetRule) -> str:
    """Return CEL for the templates in a list inside each item of a list. The name of a template is its place."""
    at = f'{string_literal(f"{before}[")} + string(n) + "]." + string(p.at)'
    inner_list = (
        f"({_templates_of_rule_expression('dyn(q)', rule)}).map(p, {_template_entry_expression(at, at, 'p.template')})"
    )
    outer_list = _value_of_type_or_empty_expression(f"{value}{_optional_steps(before)}", "list", "[]")
    return f"{outer_list}.transformList(n, q, {inner_list}).flatten()"


def _template_name_expression(rule: PodSetRule, name: str) -> str:
    return f"{name} + {string_literal(f'-{rule.name}')}" if rule.name else name


def _value_of_type_or_empty_expression(value: str, kind: str, empty: str) -> str:
    """Return CEL for an optional value; `empty` if the value is absent or of another type."""
    return f"{value}.optFlatMap(v, type(v) == {kind} ? optional.of(v) : optional.none()).orValue(dyn({empty}))"


def _template_entry_expression(at: str, name: str, template: str) -> str:
    return f'{{"at": dyn({at}), "name": dyn({name}), "template": dyn({template})}}'


def message_with_path_expression(message: str, at: str, *, bare: bool) -> str:
    """Return CEL for a message about a template's Pod. The message gets the path of the template.

    The template's path is put before each path in the message, as in `…; spec.x: …`. A message without a path begins
    with the template's path.

    Args:
        message: a simple expression, such as a name.
        at: an expression for the path of the template.
        bare: whether the template is a PodSpec. Its path then replaces `spec`.
    """
    further = replace_calls_for_further_paths(at, bare=bare)
    joined = f'"." + {message}{further}'
    if bare:
        joined = f'({message}.startsWith("spec") ? {message}.substring(4){further} : ": " + {message})'
    return f'{at} + ({message}.matches({string_literal(PATH)}) ? {joined} : ": " + {message})'


def replace_calls_for_further_paths(at: str, *, bare: bool) -> str:
    """Return the calls that add the template's path to further paths, as request_objects.py does."""
    spec = "." if bare else ".spec."
    return "".join(f'.replace("{before}spec.", "{before}" + {at} + "{spec}")' for before in _BEFORE_OTHERS)
