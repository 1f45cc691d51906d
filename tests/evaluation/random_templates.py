"""Random pod templates as people write them, and random policies about Pods. A seed makes them repeatable."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from webhook.apimachinery.attributes import JSON

_NOTHING: Final = object()


def _fields(random: Random, **choices: tuple[Any, ...]) -> JSON:
    """Return one random value for each field. A field with the value `_NOTHING` is left out."""
    chosen = {name: random.choice(values) for name, values in choices.items()}
    return {name: value for name, value in chosen.items() if value is not _NOTHING}


def _amounts(random: Random) -> JSON:
    return _fields(
        random,
        cpu=(_NOTHING, 1, 0.5, "500m", "1000m", 2.0, None, "2"),
        memory=(_NOTHING, "1Gi", "1024Mi", 1073741824, "1e9"),
        **{"nvidia.com/gpu": (_NOTHING, 8, "8", 0, "0", 1, 16, None)},
    )


def _env(random: Random, name: str) -> JSON:
    return {
        "name": name,
        **_fields(
            random,
            value=(_NOTHING, "", None, "x", "8"),
            valueFrom=(_NOTHING, _NOTHING, None, {"fieldRef": {"fieldPath": "metadata.name"}}),
        ),
    }


def _container(random: Random, name: str) -> JSON:
    resources = _fields(
        random, limits=(_NOTHING, None, {}, _amounts(random)), requests=(_NOTHING, None, {}, _amounts(random))
    )
    return {
        "name": name,
        **_fields(
            random,
            image=(_NOTHING, "registry.example/a", "registry.example/a:1", "a:latest", "a@sha256:0", ""),
            imagePullPolicy=(_NOTHING, _NOTHING, None, "", "Always", "Never"),
            command=(_NOTHING, None, [], ["a", None]),
            args=(_NOTHING, None, [], ["", "b"]),
            env=(_NOTHING, None, [], [_env(random, "A"), _env(random, "B")]),
            resources=(_NOTHING, None, {}, resources, resources, resources),
            securityContext=(_NOTHING, None, {}, {"privileged": False}, {"privileged": None, "runAsUser": 0}),
            ports=(_NOTHING, None, [], [{"containerPort": 80}, {"containerPort": 81, "protocol": None, "hostPort": 0}]),
            stdin=(_NOTHING, False, None, True),
            livenessProbe=(_NOTHING, None, {"httpGet": {"port": 80}}, {"exec": {"command": []}, "periodSeconds": 0}),
            volumeMounts=(_NOTHING, None, [{"name": "v", "mountPath": "/v", "readOnly": False}]),
        ),
    }


def random_template(random: Random) -> JSON:
    spec = _fields(
        random,
        initContainers=(_NOTHING, None, [], [_container(random, "init")]),
        restartPolicy=(_NOTHING, None, "", "Never", "OnFailure"),
        hostNetwork=(_NOTHING, None, False, True),
        nodeSelector=(_NOTHING, None, {}, {"pool": "a"}, {"pool": None}),
        tolerations=(_NOTHING, None, [], [{"key": "a", "operator": ""}, None]),
        serviceAccountName=(_NOTHING, None, "", "trainer"),
        terminationGracePeriodSeconds=(_NOTHING, None, 0, 30),
        securityContext=(_NOTHING, None, {}, {"runAsNonRoot": False}),
        priorityClassName=(_NOTHING, None, "", "high"),
        schedulerName=(_NOTHING, None, "", "volcano"),
        enableServiceLinks=(_NOTHING, None, False),
        overhead=(_NOTHING, None, {"cpu": 1}),
        volumes=(
            *(_NOTHING, None, []),
            [{"name": "v"}, {"name": "w", "emptyDir": None}],
            [{"name": "v", "configMap": {"name": "c", "optional": None}}, {"name": "w", "hostPath": {"path": "/w"}}],
            [{"name": "v", "downwardAPI": None}, {"name": "w", "secret": {"secretName": "", "items": []}}],
        ),
    )
    spec["containers"] = [_container(random, name) for name in random.choice((["main"], ["main", "sidecar"]))]
    metadata = _fields(
        random,
        labels=(_NOTHING, None, {}, {"team": "a"}, {"team": None}),
        annotations=(_NOTHING, None, {}, {"a": ""}),
    )
    return {**({"metadata": metadata} if metadata or random.random() < 0.5 else {}), "spec": spec}


_ATOMS: Final = (
    *(
        f"has(object.spec.{name})"
        for name in (
            *("nodeSelector", "tolerations", "serviceAccountName", "serviceAccount", "hostNetwork", "initContainers"),
            *("restartPolicy", "priorityClassName", "volumes", "securityContext", "enableServiceLinks", "overhead"),
        )
    ),
    "has(object.metadata.labels)",
    "object.metadata.?labels[?'team'].orValue('none') == 'a'",
    "has(object.metadata.annotations)",
    "object.spec.restartPolicy == 'Always'",
    "object.spec.schedulerName == 'default-scheduler'",
    "object.spec.terminationGracePeriodSeconds == 30",
    "object.spec.containers.all(c, quantity(c.resources.limits['nvidia.com/gpu']).isLessThan(quantity('9')))",
    "object.spec.containers.all(c, has(c.resources.requests) && 'cpu' in c.resources.requests)",
    "object.spec.containers.all(c, c.resources.limits.cpu == c.resources.requests.cpu)",
    "object.spec.containers.all(c, !has(c.resources.limits))",
    "object.spec.containers.all(c, c.imagePullPolicy == 'IfNotPresent')",
    "object.spec.containers.exists(c, has(c.env) && c.env.exists(e, has(e.value) && e.value == ''))",
    "object.spec.containers.all(c, !has(c.env) || c.env.all(e, has(e.value) || has(e.valueFrom)))",
    "object.spec.containers.all(c, has(c.command) == has(c.args))",
    "object.spec.containers.all(c, has(c.securityContext.privileged))",
    "object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, p.protocol == 'TCP' && has(p.hostPort)))",
    "object.spec.containers.all(c, !has(c.livenessProbe) || c.livenessProbe.periodSeconds == 10)",
    "object.spec.containers.exists(c, has(c.stdin) || has(c.volumeMounts))",
    "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
    "object.spec.volumes.all(v, has(v.emptyDir) || has(v.configMap))",
    "object.spec.volumes.all(v, !has(v.configMap) || v.configMap.defaultMode == 420)",
    "object.spec.tolerations.all(t, has(t.key) || has(t.operator))",
    "size(object.spec.initContainers) == 1",
    "oldObject == null",
)
"""Expressions of a policy about a Pod. Some fail for an absent field."""


def random_validation(random: Random) -> JSON:
    """Return a random validation. Its messageExpression prints fields, to show what the policy reads."""
    chosen = [f"{random.choice(('', '!'))}({atom})" for atom in random.sample(_ATOMS, random.choice((1, 2, 3)))]
    joined = f" {random.choice(('&&', '||'))} ".join(chosen)
    seen = " + ',' + ".join(f"string({atom})" for atom in random.sample(_ATOMS[:14], 3))
    return {"expression": joined, "messageExpression": f"'saw ' + {seen}"}


_CHANGES: Final = (
    "Object{spec: Object.spec{schedulerName: 'volcano'}}",
    "Object{spec: Object.spec{terminationGracePeriodSeconds: 30}}",
    "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'a'}}}",
    "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'gpu', operator: 'Exists'}]}}",
    (
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, "
        "env: [Object.spec.containers.env{name: 'NCCL_DEBUG', value: 'INFO'}]})}}"
    ),
    (
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, "
        "imagePullPolicy: 'Always'})}}"
    ),
    "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'wait', image: 'w:1'}]}}",
    "[JSONPatch{op: 'add', path: '/spec/schedulerName', value: 'kai'}]",
    "[JSONPatch{op: 'remove', path: '/spec/securityContext'}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/0/env', value: [{'name': 'Z', 'value': '1'}]}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/0/resources/limits', value: {'nvidia.com/gpu': 2}}]",
    "[JSONPatch{op: 'replace', path: '/spec/containers/0/resources', value: {}}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: 's'}}]",
    "[JSONPatch{op: 'add', path: '/spec/containers/0', value: {'name': 'first', 'image': 's'}}]",
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
    "[JSONPatch{op: 'replace', path: '/spec/containers/0/resources/limits/cpu', value: '3'}]",
    "[JSONPatch{op: 'remove', path: '/spec/containers/0/command'}]",
)


def random_change(random: Random) -> str:
    return random.choice(_CHANGES)
