"""Declares the variables and types that the expressions of a policy may use, by the place of the expression.

`object`, `oldObject` and `params` are dyn. `request` and `namespaceObject` are declared field by field, so that a wrong
field name is found when the policy is loaded. Source: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/compile.go
(BuildRequestType, BuildNamespaceType, createEnvForOpts) and composition.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from webhook.cel.environment import Environment
from webhook.cel.library.declaration import Version
from webhook.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Structure,
    Type,
    list_of,
    map_of,
    object_type,
    opaque_type,
)
from webhook.facts.subject import Fact
from webhook.rules.catalogue import Catalogue
from webhook.rules.declarations import LIST_OF_PROBLEMS, PROBLEM, PROBLEMS, code_function

AUTHORIZER = opaque_type("kubernetes.authorization.Authorizer")
RESOURCE_CHECK = opaque_type("kubernetes.authorization.ResourceCheck")
REQUEST_RESOURCE = "authorizer.requestResource"
REQUEST, NAMESPACE, VARIABLES = "kubernetes.AdmissionRequest", "kubernetes.Namespace", "kubernetes.variables"

_KIND = Structure("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = Structure("kubernetes.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING})
_USER = Structure(
    "kubernetes.UserInfo",
    {"username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))},
)
_REQUEST = Structure(
    REQUEST,
    {
        "kind": object_type(_KIND.name),
        "resource": object_type(_RESOURCE.name),
        "subResource": STRING,
        "requestKind": object_type(_KIND.name),
        "requestResource": object_type(_RESOURCE.name),
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": object_type(_USER.name),
        "dryRun": BOOL,
        "options": DYN,
    },
)
_CONDITION = Structure(
    "kubernetes.NamespaceCondition",
    {"status": STRING, "type": STRING, "lastTransitionTime": TIMESTAMP, "message": STRING, "reason": STRING},
)
_NAMESPACE_METADATA = Structure(
    "kubernetes.NamespaceMetadata",
    {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": list_of(STRING),
    },
)
_NAMESPACE_SPEC = Structure("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)})
_NAMESPACE_STATUS = Structure(
    "kubernetes.NamespaceStatus", {"conditions": list_of(object_type(_CONDITION.name)), "phase": STRING}
)
NAMESPACE_METADATA = frozenset(
    (
        *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
        *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
    )
)
"""The fields of `namespaceObject.metadata` (k8s.io/apiserver v0.36 pkg/admission/plugin/cel/condition.go)."""
_NAMESPACE = Structure(
    NAMESPACE,
    {
        "metadata": object_type(_NAMESPACE_METADATA.name),
        "spec": object_type(_NAMESPACE_SPEC.name),
        "status": object_type(_NAMESPACE_STATUS.name),
    },
)
_STRUCTURES = {
    structure.name: structure
    for structure in (
        *(_KIND, _RESOURCE, _USER, _REQUEST),
        *(_CONDITION, _NAMESPACE_METADATA, _NAMESPACE_SPEC, _NAMESPACE_STATUS, _NAMESPACE),
    )
}
_PLAIN = frozenset((BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT))


@cache
def create_expression_environment(version: Version, *, params: bool, authorizer: bool, mutation: bool) -> Environment:
    """Return the environment for one place of expressions, without `variables` and facts."""
    variables = {"object": DYN, "oldObject": DYN, "namespaceObject": object_type(NAMESPACE)}
    variables["request"] = object_type(REQUEST)
    if params:
        variables["params"] = DYN
    if authorizer:
        variables |= {"authorizer": AUTHORIZER, REQUEST_RESOURCE: RESOURCE_CHECK}
    return Environment(version=version, variables=variables, structures=_STRUCTURES, mutation=mutation)


def with_facts(place: Environment, facts: Sequence[Fact]) -> Environment:
    """Return the environment with the facts that a policy declares."""
    for fact in facts:
        structures = {each.structure.name: each.structure for each in fact.structures}
        place = place.extended_with(variables={fact.name: fact.type}, structures=structures)
    return place


def with_problems(place: Environment, rules: Catalogue) -> Environment:
    """Return the environment with the variable `problems` and its function for rules."""
    if not rules:
        return place
    extended = place.extended_with(variables={PROBLEMS: LIST_OF_PROBLEMS}, structures={PROBLEM.name: PROBLEM})
    return replace(extended, functions=(*extended.functions, code_function(rules)))


def with_variables(place: Environment, types: Mapping[str, Type]) -> Environment:
    """Return the environment with `variables`. The fields of `variables` are the variables that are declared so far."""
    structure = Structure(VARIABLES, dict(types))
    return place.extended_with(variables={"variables": object_type(VARIABLES)}, structures={VARIABLES: structure})


def variable_type(result: Type) -> Type:
    """Return the type of a variable in later expressions (composition.go, convertCelTypeToDeclType)."""
    if result in _PLAIN:
        return result
    if result.name == "list" and result.parameters:
        return list_of(variable_type(result.parameters[0]))
    if result.name == "map" and result.parameters:
        return map_of(*map(variable_type, result.parameters))
    return DYN
