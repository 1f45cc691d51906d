"""Random policies as sites write them, over every variable that a policy may read, each with its bindings.

Policies share few expressions, and objects look alike to a policy. A wrong cache would then return the answer of another
policy or object.
"""

from __future__ import annotations

from random import Random
from typing import Final

from webhook.apimachinery.attributes import JSON

GROUP: Final = "admissionregistration.k8s.io/v1"
PREFIX: Final = "claimgate.dev/"

_SHORT: Final = (
    "!has(object.spec.hostPID)", "!has(object.spec.hostNetwork) || !object.spec.hostNetwork", "true",
    "object.metadata.name != 'b'", "has(object.metadata.labels)", "!has(object.metadata.annotations)",
    "object.metadata.?labels[?'team'].orValue('') != 'b'", "has(object.spec)", "object.spec.?priorityClassName.orValue('') == ''",
)  # fmt: skip
"""Rules that read one or two fields which most objects lack."""
_LONG: Final = (
    "object.spec.containers.all(c, !c.image.endsWith(':latest'))", "object.?spec.?containers.orValue([]).size() < 3",
    "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('') != 'gpu')", "object.spec.missing == 1",
    "oldObject == null || oldObject.metadata.?labels == object.metadata.?labels", "oldObject.spec == object.spec",
    "request.operation == 'CREATE'", "request.userInfo.username == 'alice'", "'developers' in request.userInfo.groups",
    "request.name != 'b'", "request.namespace != 'b'", "request.?dryRun.orValue(false) == false", "request.uid != ''",
    "1 / size(object.metadata.?labels.orValue({})) >= 0", "object.spec.containers.exists(c, has(c.resources.limits))",
    "namespaceObject.metadata.labels.?stage.orValue('') != 'production'", "namespaceObject != null",
    "has(namespaceObject.metadata.annotations)", "namespaceObject.metadata.name != 'b'", "dyn(object) != dyn(oldObject)",
    "authorizer.requestResource.check('create').allowed()", "object.metadata.?annotations.orValue({}).size() < 40",
)  # fmt: skip
_COSTLY: Final = tuple(
    f"{many}.all(a, {many}.all(b, {many}.all(c, string(a).size() + string(b).size() + string(c).size() >= 0)))"
    for many in (
        "object.metadata.?annotations.orValue({})",
        "object.metadata.?labels.orValue({})",
        "object.?spec.?containers.orValue([])",
    )
)
"""With many elements, these expressions come near the cost limit of an expression. A dozen of them come near the budget
of a binding."""
_PARAMS: Final = (
    "params.data.k == 'v'", "has(params.data) && has(params.data.n)", "int(params.data.n) < 3", "params == null",
    "params != null && params.metadata.name != 'p2'", "params.?data.?n.orValue('') != 'x'",
    "object.metadata.name != params.data.k", "params.data.k in object.metadata.?labels.orValue({})",
)  # fmt: skip
_FACTS: Final = {
    "podSets": ("podSets.all(p, p.pods == null || p.pods <= 4)", "podSets.size() < 3", "podSets.all(p, !p.changed)"),
    "gpu": ("gpu.devices == null || gpu.devices <= 1", "gpu.podSets.all(p, p.devices == 0)", "gpu.vendors.?nvidia.orValue(0) < 2"),
    "dra": ("dra.claims.all(c, !c.absent)", "dra.claims.filter(c, c.gpu && c.users.size() == 0).size() == 0"),
    "portableGpu": ("portableGpu.asks.all(a, !a.isAll)", "portableGpu.misplaced.size() == 0"),
    "priorities": ("priorities.classes.all(c, !c.absent)", "priorities.classes.size() == 0"),
    "kueue": ("kueue.verdict != 'never'", "kueue.managed || kueue.queue == ''"),
}  # fmt: skip
_CHECKS: Final = ("pod-resources", "gpu-requests", "device-claims", "pod-template", "launch", "storage", "mesh")
_TEXTS: Final = (
    "'named ' + object.metadata.name", "namespaceObject.metadata.name + ' forbids it'", "namespaceObject.metadata.name", "object.spec.missing", "''",
    "'for ' + request.userInfo.username", "'stage ' + namespaceObject.metadata.labels.stage", "object.metadata.labels.team",
    "object.metadata.annotations['note-1']", "request.operation", "'in ' + request.namespace", "'x'.substring(3)",
    "string(object.metadata.?annotations.orValue({}).size())",
)  # fmt: skip
_CHANGES: Final = (
    'Object{metadata: Object.metadata{labels: {"stage": namespaceObject.metadata.?labels.?stage.orValue("none")}}}',
    'Object{metadata: Object.metadata{annotations: {"by": request.userInfo.username}}}',
    'Object{metadata: Object.metadata{labels: {"changed": object.metadata.name}}}',
    '[JSONPatch{op: "add", path: "/metadata/labels/x", value: object.metadata.?labels[?"team"].orValue("none")}]',
    'has(object.metadata.labels) ? [JSONPatch{op: "remove", path: "/metadata/labels"}] : []',
    '[JSONPatch{op: "test", path: "/metadata/name", value: "a"}, JSONPatch{op: "add", path: "/metadata/labels", value: {}}]',
    '[JSONPatch{op: "add", path: "/spec/priorityClassName", value: params.data.k}]',
    '[JSONPatch{op: "add", path: "/metadata/annotations", value: {"size": string(object.?spec.?containers.orValue([]).size())}}]',
)
_KINDS: Final = (
    ("", "pods"), ("", "pods"), ("", "pods"), ("", "pods"), ("batch", "jobs"), ("trainer.kubeflow.org", "trainjobs"),
    ("kubeflow.org", "*"), ("*", "*"),
)  # fmt: skip
_SELECTORS: Final = (
    {"matchLabels": {"stage": "production"}}, {"matchExpressions": [{"key": "stage", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]},
)  # fmt: skip


class SitePolicies:
    def __init__(self, random: Random) -> None:
        self._random = random

    def draw(self, name: str) -> list[JSON]:
        return _Policy(self._random, name).objects()


class _Policy:
    """A policy while its parts are drawn. Its inputs are chosen first. Many policies have few features, and some have
    most.
    """

    def __init__(self, random: Random, name: str) -> None:
        self._random = random
        self._name = name
        self._density = random.choice((0.0, 0.0, 0.5, 1.0, 1.5))
        self._is_mutating = random.random() < 0.2
        self._has_params = self._has(0.35)
        self._fact = random.choice(tuple(_FACTS)) if self._has(0.25) else ""
        self._has_checks = not self._is_mutating and self._has(0.15)
        self._is_costly = random.random() < 0.1
        self._rules = random.sample(_SHORT, random.choice((1, 2, 4))) + random.sample(_LONG, self._few(0.5))
        self._variables: list[JSON] = []

    def _has(self, likely: float) -> bool:
        return self._random.random() < likely * self._density

    def _few(self, likely: float) -> int:
        return sum(self._has(likely) for _ in range(3))

    def objects(self) -> list[JSON]:
        random = self._random
        for number in range(self._few(0.35)):
            text = random.choice((self._rule, self._text))()
            self._variables.append({"name": f"v{number}", "expression": text})
        spec: JSON = {
            "failurePolicy": random.choice(("Fail", "Fail", "Ignore")),
            "matchConstraints": self._constraints(),
            "variables": list(self._variables),
            "matchConditions": [
                {"name": f"c{number}", "expression": self._rule(is_condition=True)} for number in range(self._few(0.3))
            ],
        }
        if self._has_params:
            spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        spec |= self._mutations() if self._is_mutating else self._validations()
        kind = "MutatingAdmissionPolicy" if self._is_mutating else "ValidatingAdmissionPolicy"
        metadata = {"name": self._name, "annotations": self._annotations()}
        policy = {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}
        return [policy, *(self._binding(kind, number) for number in range(1 + self._few(0.25)))]

    def _annotations(self) -> JSON:
        random, found = self._random, dict[str, str]()
        if self._fact:
            found["facts"] = self._fact
        if self._has_checks:
            found["checks"] = ",".join(random.sample(_CHECKS, random.choice((1, 2))))
        if self._has(0.4):
            found["expand"] = "pods"
        if self._has(0.2):
            found["updates"] = "spec"
        if not self._is_mutating and self._has(0.3):
            found["phase"] = random.choice(("mutate", "both"))
        if self._has(0.15):
            found["missing"] = random.choice(("admit", "deny", "warn"))
        return {f"{PREFIX}{key}": text for key, text in found.items()}

    def _constraints(self) -> JSON:
        random = self._random
        group, resource = random.choice(_KINDS)
        operations = random.choice((["CREATE"], ["CREATE", "UPDATE"], ["CREATE", "UPDATE"], ["*"]))
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": [resource]}
        made: JSON = {"resourceRules": [rule]}
        for selector in ("namespaceSelector", "objectSelector"):
            if self._has(0.12):
                made[selector] = random.choice(_SELECTORS)
        return made

    def _rule(self, *, is_condition: bool = False) -> str:
        random = self._random
        if self._is_costly and not is_condition and random.random() < 0.1:
            return random.choice(_COSTLY)
        if self._fact and random.random() < 0.5:
            return random.choice(_FACTS[self._fact])
        if self._has_params and random.random() < 0.4:
            return random.choice(_PARAMS)
        if self._variables and not is_condition and random.random() < 0.3:
            return f"string(variables.{random.choice(self._variables)['name']}) != ''"
        drawn = random.choice(self._rules if random.random() < 0.8 else _LONG)
        return f"({drawn}) && ({random.choice(_SHORT)})" if random.random() < 0.15 else drawn

    def _text(self) -> str:
        random = self._random
        if self._is_costly and random.random() < 0.9:
            return f"string({_COSTLY[0] if random.random() < 0.7 else random.choice(_COSTLY)})"
        if self._has_params and random.random() < 0.3:
            return random.choice(("params.data.k", "'by ' + params.metadata.name"))
        if self._variables and random.random() < 0.2:
            return f"string(variables.{random.choice(self._variables)['name']})"
        return random.choice(_TEXTS)

    def _validations(self) -> JSON:
        random = self._random
        count = random.randint(8, 16) if self._is_costly else 1 + self._few(0.3)
        rules = [self._validation() for _ in range(count)]
        if self._has_checks:
            rules.append({"expression": "problems.size() == 0", "messageExpression": "problems"})
        audits = [{"key": f"k{number}", "valueExpression": self._text()} for number in range(self._few(0.12))]
        return {"validations": rules, "auditAnnotations": audits}

    def _validation(self) -> JSON:
        random = self._random
        made: JSON = {"expression": random.choice(self._rules) if self._is_costly else self._rule()}
        if self._is_costly or random.random() < 0.55:
            made["messageExpression"] = self._text()
        if random.random() < 0.5:
            made["message"] = "must be so"
        if random.random() < 0.2:
            made["reason"] = random.choice(("Forbidden", "Invalid"))
        return made

    def _mutations(self) -> JSON:
        random = self._random
        pool = _CHANGES if self._has_params else tuple(text for text in _CHANGES if "params" not in text)
        texts = [random.choice(pool) for _ in range(1 + self._few(0.2))]
        made = [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
            if "JSONPatch" in text
            else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
            for text in texts
        ]
        return {"mutations": made, "reinvocationPolicy": random.choice(("Never", "IfNeeded"))}

    def _binding(self, kind: str, number: int) -> JSON:
        random = self._random
        spec: JSON = {"policyName": self._name}
        if not self._is_mutating:
            actions = (["Deny"], ["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Deny", "Audit"], ["Warn", "Audit"])
            spec["validationActions"] = random.choice(actions)
        if self._has_params:
            spec["paramRef"] = self._reference()
        if self._has(0.15):
            spec["matchResources"] = {random.choice(("namespaceSelector", "objectSelector")): random.choice(_SELECTORS)}
        metadata = {"name": f"{self._name}-{number}"}
        return {"apiVersion": GROUP, "kind": f"{kind}Binding", "metadata": metadata, "spec": spec}

    def _reference(self) -> JSON:
        random = self._random
        action = {"parameterNotFoundAction": random.choice(("Allow", "Deny"))}
        where = {"namespace": "a"} if random.random() < 0.5 else {}
        if random.random() < 0.35:
            return {"selector": {"matchLabels": {"t": random.choice("ab")}}, **where, **action}
        return {"name": random.choice(("p1", "p1", "p2")), **where, **action}
