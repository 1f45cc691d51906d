"""Makes the policies for pod controllers that Kyverno generates from a policy for Pods ("autogen").

Kyverno rewrites the text of expressions and messages: `object.spec` becomes `object.spec.template.spec`. Kyverno does
not parse CEL, so an expression that reads the Pod in another way becomes wrong. The policies here have the same text,
and give the same verdicts. New policies should use `expand: pods` of claimgate. Source: kyverno/kyverno 111e07b
pkg/cel/autogen, pkg/cel/policies/{vpol,mpol}/autogen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get

_CONTROLLERS: Final = {
    "daemonsets": "apps",
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "jobs": "batch",
    "cronjobs": "batch",
}
TEMPLATE: Final = ("spec", "template")
TEMPLATE_OF_CRON_JOB: Final = ("spec", "jobTemplate", "spec", "template")
"""The path of the pod template in a CronJob. Other controllers have TEMPLATE."""
_TEMPLATES: Final = {"-autogen": TEMPLATE, "-autogen-cronjobs": TEMPLATE_OF_CRON_JOB}
"""The path of the pod template, by the ending of the generated policy's name."""
_NOT_NAMESPACE: Final = r"(?!\.namespace(?![A-Za-z0-9_]))"
"""Excludes `object.metadata.namespace` from the rewriting. A template has no namespace, so the expression reads the
namespace of the controller.
"""


def variants_for_controllers(spec: Mapping[str, Any], controllers: JSON) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each pod template path the ending of the new policy's name, and the new policy's spec. Yield nothing if
    the policy matches other objects than Pods.

    `controllers` are the kinds of controllers that the policy names; None means all.
    """
    if not is_about_pods_alone(spec.get("matchConstraints")):
        return
    chosen = [name for name in _CONTROLLERS if controllers is None or name in controllers]
    for ending, template in _TEMPLATES.items():
        names = [name for name in chosen if (name == "cronjobs") is (ending == "-autogen-cronjobs")]
        if names:
            rewrite = _rewrite_mutating if "mutations" in spec else _rewrite_validating
            yield ending, {**rewrite(spec, template), "matchConstraints": _constraints_of_controllers(spec, names)}


def is_about_pods_alone(constraints: JSON) -> bool:
    """Return whether a policy matches all Pods of v1 and nothing else."""
    rules: list[dict[str, Any]] = get(constraints, ("resourceRules",)) or []
    selector = get(constraints, ("objectSelector",)) or {}
    if any(selector.values()) or get(constraints, ("excludeResourceRules",)) or len(rules) != 1:
        return False
    rule_for_pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    return not rules[0].get("resourceNames") and all(rules[0].get(key) == value for key, value in rule_for_pods.items())


def _constraints_of_controllers(spec: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    constraints = spec["matchConstraints"]
    operations = constraints["resourceRules"][0].get("operations") or []
    groups = dict.fromkeys(_CONTROLLERS[name] for name in names)
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": operations,
            "resources": sorted(name for name in names if _CONTROLLERS[name] == group),
        }
        for group in groups
    ]
    selector = constraints.get("namespaceSelector")
    return {"resourceRules": rules, **({"namespaceSelector": selector} if selector else {})}


def _rewrite_validating(spec: Mapping[str, Any], template: Sequence[str]) -> dict[str, Any]:
    """Rewrite every text in expressions and in messages."""

    def rewrite(text: str) -> str:
        return rewrite_text_for_template(text, template)

    return {key: with_texts(value, rewrite) for key, value in spec.items()}


def rewrite_text_for_template(text: str, template: Sequence[str]) -> str:
    """Replace spec and metadata of the Pod by spec and metadata of the pod template."""
    template_path = ".".join(template)
    for part in ("spec", "metadata"):
        text = re.sub(rf"(object|oldObject)\.{part}{_NOT_NAMESPACE}", rf"\1.{template_path}.{part}", text)
    return text


def with_texts(value: Any, rewrite: Callable[[str], str]) -> Any:
    """Return a copy of a value with every text rewritten."""
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, dict):
        return {key: with_texts(item, rewrite) for key, item in value.items()}
    return [with_texts(item, rewrite) for item in value] if isinstance(value, list) else value


def _rewrite_mutating(spec: Mapping[str, Any], template: Sequence[str]) -> dict[str, Any]:
    """Rewrite matchConditions and apply configurations. Variables and JSON patches stay unchanged."""

    def rewrite(text: str) -> str:
        return _rewrite_mutation(text, template)

    conditions = [
        {**each, "expression": rewrite(str(each.get("expression", "")))} for each in spec.get("matchConditions") or ()
    ]
    mutations = [_mutation_of_template(each, rewrite) for each in spec.get("mutations") or ()]
    return {**spec, **({"matchConditions": conditions} if conditions else {}), "mutations": mutations}


def _mutation_of_template(mutation: Mapping[str, Any], rewrite: Callable[[str], str]) -> dict[str, Any]:
    written = get(mutation, ("applyConfiguration", "expression"))
    if not isinstance(written, str):
        return dict(mutation)
    return {**mutation, "applyConfiguration": {"expression": rewrite(written)}}


def _rewrite_mutation(text: str, template: Sequence[str]) -> str:
    """Wrap the outermost `Object{…}` in one object for each step of the template's path."""
    template_path = ".".join(template)
    for part in ("spec", r"metadata\.labels", r"metadata\.annotations"):
        plain = part.replace("\\", "")
        text = re.sub(rf"\b(object|oldObject|Object)\.{part}", rf"\1.{template_path}.{plain}", text)
    start = re.match(r"\s*Object[ \t\r\n]*\{", text)
    end = _end_of_braces(text, start.end()) if start else -1
    if start is None or end <= start.end():
        return text
    opened = "".join(f"{each}: Object.{'.'.join(template[: depth + 1])}{{" for depth, each in enumerate(template))
    return f"Object{{{opened}{text[start.end() : end]}{'}' * len(template)}}}{text[end + 1 :]}"


def _end_of_braces(text: str, start: int) -> int:
    """Return the index of the closing brace for the brace before `start`; -1 without one."""
    depth = 1
    for place in re.finditer(r"[{}]", text[start:]):
        depth += 1 if place[0] == "{" else -1
        if depth == 0:
            return start + place.start()
    return -1
