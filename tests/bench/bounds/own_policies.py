"""A site's own policies with slow expressions, and mutations with thousands of operations, as files to serve."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.bench.bounds.reviews import JSON, Maker, container, pod
from tests.bench.bounds.slow_expressions import EVALUATED, LABEL, OWN, TEXT, WORDS, OwnPolicy, words

_RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]
_VARIABLES = [
    {"name": "words", "expression": "object.spec.containers[0].?args.orValue([])"},
    {"name": "text", "expression": "object.metadata.?annotations[?'text'].orValue('')"},
]


def _match(label: str) -> JSON:
    return {"resourceRules": _RULES, "objectSelector": {"matchLabels": {LABEL: label}}}


def document(kind: str, name: str, spec: JSON) -> JSON:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def validating(name: str, constraints: JSON, validations: list[JSON], *, failure: str = "Fail") -> list[JSON]:
    spec = {
        "matchConstraints": constraints,
        "failurePolicy": failure,
        "variables": _VARIABLES,
        "validations": validations,
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    kind = "ValidatingAdmissionPolicy"
    return [document(kind, name, spec), document(f"{kind}Binding", name, binding)]


def _documents(own: OwnPolicy) -> list[JSON]:
    message = {"messageExpression": f"{TEXT} + '{EVALUATED}'"} if own.name == "huge message" else {"message": EVALUATED}
    validation = {"expression": own.expression, **message}
    return validating(own.label, _match(own.label), [validation], failure="Ignore" if own.ignored else "Fail")


_ADD = "JSONPatch{{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey({key}), value: a}}"
MUTATING = {
    "patch of annotations": {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}] + "
            f"{WORDS}.map(a, {_ADD.format(key='a')})"
        },
    },
    "patch of a list": {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": f"{WORDS}.map(a, JSONPatch{{op: 'add', path: '/spec/containers/0/args/0', value: a}})"
        },
    },
    "apply containers": {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {
            "expression": "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
            "Object.spec.containers{name: c.name, image: 'registry.example/changed:2'})}}"
        },
    },
}
MUTATED: dict[str, Maker] = {
    "patch of annotations": words,
    "patch of a list": words,
    "apply containers": lambda n: pod({"containers": [container(f"c-{i}") for i in range(n)]}),
}


def _mutating(name: str, mutation: JSON) -> list[JSON]:
    label, kind = name.replace(" ", "-"), "MutatingAdmissionPolicy"
    spec = {
        "matchConstraints": _match(label),
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "variables": _VARIABLES,
        "mutations": [mutation],
    }
    return [document(kind, label, spec), document(f"{kind}Binding", label, {"policyName": label})]


def mutated(name: str, n: int) -> JSON:
    made = MUTATED[name](n)
    return {**made, "metadata": {**made["metadata"], "labels": {LABEL: name.replace(" ", "-")}}}


def write(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    documents = [one for own in OWN for one in _documents(own)]
    documents += [one for name, mutation in MUTATING.items() for one in _mutating(name, mutation)]
    (folder / "policies.yaml").write_text(yaml.safe_dump_all(documents))
    return folder
