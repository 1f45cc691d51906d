"""Typical mistakes of authors of policies, for `claimgate policies check` and for kube-apiserver's own type check.

A row has the policy and a part of the output of `policies check`. For TYPED rows, kube-apiserver writes a warning into
status.typeChecking. For UNSEEN rows, it writes nothing.
"""

from tests.literals import PODS, mutating, validating

DEPLOYMENTS = {**PODS, "apiGroups": ["apps"], "resources": ["deployments"]}
TRAIN_JOBS = {**PODS, "apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["*"], "resources": ["trainjobs"]}
MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
PARAM = {"paramKind": MAPS, "binding": {"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}}


def on_pods(expression, **spec):
    return validating(expression, **spec)


def on_deployments(expression, **spec):
    return validating(expression, rule=DEPLOYMENTS, **spec)


def on_train_jobs(expression, **spec):
    return validating(expression, rule=TRAIN_JOBS, **spec)


def with_rule(**rule):
    return validating("object.metadata.name != ''", rule={**PODS, **rule})


def with_condition(expression, rule=PODS):
    return validating(
        "object.metadata.name != ''", rule=rule, matchConditions=[{"name": "only", "expression": expression}]
    )


TYPED = {
    "a number in quotes": (on_deployments("object.spec.replicas > '3'"), "write `3` without quotes"),
    "a boolean in quotes": (on_pods("object.spec.hostNetwork == 'true'"), "write `true` without quotes"),
    "a boolean that is compared with a number": (
        on_pods("object.spec.hostNetwork == 1"),
        "compare it with `true` or `false`",
    ),
    "a list that is read as an object": (
        on_pods("object.spec.containers.image != ''"),
        "`object.spec.containers` is a list, which has no fields: test its elements, as in",
    ),
    "an environment that is read by name": (
        on_pods("object.spec.containers[0].env.FOO == 'x'"),
        "`object.spec.containers[0].env` is a list, which has no fields",
    ),
    "a list that is indexed by name": (
        on_pods("object.spec.containers['main'].image != ''"),
        'write `object.spec.containers.exists(x, x.name == "main")`',
    ),
    "`contains` on a list": (
        on_pods("object.spec.containers.contains('a')"),
        'write `"a" in object.spec.containers`',
    ),
    "a list that is compared with a text": (
        on_pods("object.metadata.finalizers == 'a'"),
        'write `"a" in object.metadata.finalizers`',
    ),
    "an element that is compared with its name": (
        on_pods("object.spec.containers.all(c, c == 'main')"),
        "an object and a string do not fit `==`",
    ),
    "a key of a map that is used as an entry": (
        on_pods("object.metadata.labels.exists(l, l.key == 'team')"),
        "over a map, `l` is the key; write `object.metadata.labels[l]` for its value",
    ),
    "a label that is read as a map": (
        on_pods("object.metadata.labels.team.name == 'x'"),
        "`object.metadata.labels.team` is a string, which has no fields",
    ),
    "a label that is compared with a number": (
        on_pods("object.metadata.labels['level'] > 3"),
        'write the number in quotes, or `int(object.metadata.labels["level"])`',
    ),
    "a map that is compared with a text": (
        on_pods("object.metadata.annotations == 'x'"),
        "a map and a string do not fit `==`",
    ),
    "a map that is split as a text": (
        on_pods("object.metadata.labels.split(',').size() > 0"),
        "a map has no function `split` with such values",
    ),
    "a macro over a text": (
        on_pods("'a' in object.metadata.name"),
        'write `object.metadata.name.contains("a")`',
    ),
    "the size of a number": (
        on_deployments("object.spec.replicas.size() > 1"),
        "a whole number has no function `size`",
    ),
    "a pattern for a number": (
        on_deployments("object.spec.replicas.matches('[0-9]')"),
        "write `string(object.spec.replicas)` for its text",
    ),
    "a number that is added to a text": (
        on_deployments("object.spec.replicas + '1' == '31'"),
        "a whole number and a string do not fit `+`",
    ),
    "containers and ephemeral containers in one list": (
        on_pods("(object.spec.containers + object.spec.?ephemeralContainers.orValue([])).all(c, c.image != 'a')"),
        "write `dyn(object.spec.?ephemeralContainers.orValue([]))`",
    ),
    "a condition with results of two types": (
        on_pods("(has(object.spec.nodeName) ? object.spec.nodeName : object.spec.containers) != 'a'"),
        "the values after `?` and `:` have different types, a string and a list: write `dyn(object.spec.containers)`",
    ),
    "a condition with results of two kinds of objects": (
        on_pods("(has(object.spec.securityContext) ? object.spec.securityContext : object.spec.containers[0]) != null"),
        "different types, `core.v1.PodSecurityContext` and `core.v1.Container`: write `dyn(object.spec.containers[0])`",
    ),
    "a text in place of a condition": (
        on_pods("object.metadata.name ? true : false"),
        "a string is before `?`: write a condition there",
    ),
    "a name that is compared with null": (
        on_pods("object.spec.nodeName == null"),
        "`object.spec.nodeName` is never null: write `has(object.spec.nodeName)` instead",
    ),
    "a misspelled field": (
        on_deployments("object.spec.replica > 3"),
        "`object.spec.replica` does not exist in Deployment: did you mean `replicas`?",
    ),
    "a misspelled field of oldObject": (
        on_deployments("oldObject.spec.replica == 3"),
        "`oldObject.spec.replica` does not exist in Deployment",
    ),
    "the template of a Pod": (
        on_pods("object.spec.template.spec.containers.size() > 0"),
        "`object.spec.template` does not exist in Pod",
    ),
    "a variable of another type": (
        on_pods("variables.a > 1", variables=[{"name": "a", "expression": "object.metadata.name"}]),
        "`variables.a > 1`: a string and a whole number do not fit `>`",
    ),
    "a param that is compared with a number": (
        on_pods("params.data.most > 3", **PARAM),
        "`params.data.most > 3`: a string and a whole number do not fit `>`",
    ),
    "a misspelled field of params": (
        on_pods("params.dat.most == 'a'", **PARAM),
        "`params.dat` does not exist in ConfigMap",
    ),
}
UNSEEN = {
    "labels that may be missing": (
        on_pods("object.metadata.labels.team != ''"),
        "`object.metadata.labels` is not set there: write `object.metadata.?labels` with `orValue(…)`, or check `has(",
    ),
    "a label that may be missing": (
        on_pods("has(object.metadata.labels) && object.metadata.labels['team'] != ''"),
        'write `object.metadata.labels[?"team"].orValue(…)`, or ask `"team" in object.metadata.labels` first',
    ),
    "labels of a custom kind that may be missing": (
        on_train_jobs("object.metadata.labels.team != ''"),
        "spec.validations[0].expression: fails on the smallest valid TrainJob: `object.metadata.labels` is not set there",
    ),
    "a label of a custom kind that may be missing": (
        on_train_jobs("!has(object.metadata.labels) || object.metadata.labels['team'] != ''"),
        'fails on a valid TrainJob: `object.metadata.labels` has no "team" there',
    ),
    "a field of containers that may be missing": (
        on_pods("object.spec.containers.all(c, has(c.securityContext) && c.securityContext.runAsNonRoot)"),
        "fails on a valid Pod without spec.containers[].securityContext.runAsNonRoot: `c.securityContext.runAsNonRoot`",
    ),
    "a boolean that is false when it is missing": (
        on_pods("object.spec.hostNetwork == false"),
        "`object.spec.hostNetwork` is not set there",
    ),
    "a variable that may be missing": (
        on_pods("variables.a == 'x'", variables=[{"name": "a", "expression": "object.spec.nodeName"}]),
        "spec.variables[0].expression: fails on the smallest valid Pod: `object.spec.nodeName` is not set there",
    ),
    "a condition on a field that may be missing": (
        with_condition("object.metadata.annotations.skip != 'true'"),
        "spec.matchConditions[0].expression: fails on the smallest valid Pod",
    ),
    "a label of the namespace that may be missing": (
        on_pods("namespaceObject.metadata.labels.team == 'a'"),
        "`namespaceObject.metadata.labels.team` is not set there",
    ),
    "oldObject of a creation": (
        on_pods("object.metadata.name == oldObject.metadata.name"),
        "`oldObject` is null on CREATE: write `request.operation == 'CREATE' || …`, or leave CREATE out of `operations`",
    ),
    "object of a deletion": (
        with_rule(operations=["DELETE"]),
        "`object` is null on DELETE: read `oldObject`",
    ),
    "the group core": (with_rule(apiGroups=["core"]), 'no API group has the name `core`: write ""'),
    "a resource in another group": (
        with_rule(resources=["deployments"]),
        'there are no deployments in group "": write `apps`',
    ),
    "a group with its version": (
        with_rule(apiGroups=["apps/v1"], resources=["deployments"]),
        "there are no deployments in group `apps/v1`: write `apps`",
    ),
    "a version that is not served": (
        with_rule(apiGroups=["apps"], apiVersions=["v1beta1"], resources=["deployments"]),
        "deployments of group `apps` are not served in `v1beta1`: write `v1`",
    ),
    "a misspelled resource": (
        with_rule(resources=["persistantvolumeclaims"]),
        "did you mean `persistentvolumeclaims`?",
    ),
    "a sub-resource that only CONNECT reaches": (
        with_rule(resources=["pods/exec"]),
        "`pods/exec` has only the operation CONNECT",
    ),
    "a scope that the resource does not have": (with_rule(scope="Cluster"), "write `scope: Namespaced`"),
    "a condition on a kind in lower case": (
        with_condition("object.kind == 'pod'"),
        "`object.kind == 'pod'` is false for every request: `object.kind` is `Pod` here",
    ),
    "a condition on an operation in lower case": (
        with_condition("request.operation in ['create', 'update']"),
        "is false for every request: `request.operation` is `CREATE` or `UPDATE` here",
    ),
    "a condition on an operation that the rules leave out": (
        with_condition("request.operation == 'DELETE' && has(object.spec.nodeName)"),
        "is false for every request: `request.operation` is `CREATE` or `UPDATE` here",
    ),
    "a validation that is true for every object of its kind": (
        on_pods("object.kind != 'Deployment'"),
        "is true for every request, so it refuses nothing: `object.kind` is `Pod` here",
    ),
    "a condition of the wrong type": (
        with_condition("object.metadata.name == 3"),
        "spec.matchConditions[0].expression: `object.metadata.name == 3`",
    ),
    "a patch below a field that may be missing": (
        mutating('[JSONPatch{op: "add", path: "/metadata/labels/team", value: "x"}]'),
        "fails on the smallest valid Pod: JSON Patch: add operation does not apply",
    ),
    "a list that is null": (
        validating(
            "object.rules.all(r, r.verbs.size() > 0)",
            rule={**PODS, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]},
        ),
        "fails on the smallest valid Role: got 'types.Null', expected iterable type: a list is null there",
    ),
}
QUANTITIES = {
    "a quantity as a number": (
        on_pods("object.spec.containers.all(c, !has(c.resources.limits) || int(c.resources.limits.memory) < 5)"),
        "read amounts with `quantity(…)`",
    ),
    "a quantity that is compared as a text": (
        on_pods(
            "object.spec.containers.all(c, c.resources.?limits.memory.orValue('0') <= '4Gi' || c.resources.limits.cpu <= '4')"
        ),
        "compares quantities as strings, so `10` is less than `9`: write `!quantity(",
    ),
}
"""kube-apiserver warns that `limits` does not exist, for these policies and for each policy that reads limits."""
