"""What policies keep between requests changes no answer: random policies, and requests of which many look alike."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.warm import ByKind, Step, assert_same, examples
from tests.literals import PODS, job, mutating, namespace, pod, policies, request, validating
from webhook.attributes import JSON, UserInfo
from webhook.cluster.files import FilesCluster

PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}


def config(name: str = "c", where: str = "site", labels: JSON = None, **data: str) -> JSON:
    metadata = {"name": name, "namespace": where, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


TEAM, OTHERS = FilesCluster([namespace()]), [namespace(tier="silver"), namespace("other", tier="gold")]
GOLD, SILVER = FilesCluster([namespace(tier="gold"), namespace("other")]), FilesCluster(OTHERS)
NAMESPACES = [TEAM, GOLD, SILVER, TEAM, GOLD, SILVER, FilesCluster(), None]
CONFIGS = [
    FilesCluster([config()]),
    FilesCluster([config(on="yes"), config(where="team", on="no")]),
    FilesCluster([config(on="no"), config("d", labels={"a": "x"}, on="yes"), config(where="team", on="yes")]),
    FilesCluster([config(on="yes", ignore="pod-resources/limit-required"), config("d", labels={"a": "x"}, on="yes")]),
    FilesCluster([config("gpu-portable", "claimgate-system", **{"resource.team": "amd.com/gpu"}), config(on="no")]),
    FilesCluster(),
    None,
]
NOTHING = FilesCluster()
VIEWS = st.builds(
    lambda spaces, configs: ByKind({"Namespace": spaces, "ConfigMap": configs}, NOTHING),
    st.sampled_from(NAMESPACES),
    st.sampled_from(CONFIGS),
)

FIELDS = ("object.spec.nodeName", "object.spec.hostNetwork", "object.spec.priority", "object.spec.overhead")
ALL_FIELDS = (
    *FIELDS,
    "object.spec.containers",
    "object.metadata.name",
    "object.metadata.generateName",
    "object.metadata.namespace",
    "object.metadata.labels",
    "object.metadata.labels.a",
    "oldObject.spec.nodeName",
)
OF_REQUEST = (
    "request.operation == 'CREATE'",
    "request.operation != 'DELETE'",
    "request.userInfo.username == 'alice'",
    "'admins' in request.userInfo.groups",
    "request.dryRun",
    "has(request.name) && request.name == 'p'",
    "has(request.namespace) && request.namespace == 'team'",
    "has(request.subResource)",
    "has(request.requestSubResource) && request.requestSubResource == 'status'",
    "request.kind.kind == 'Pod'",
    "request.resource.resource == 'pods'",
    "request.options != null && has(request.options.fieldManager)",
)
OF_OBJECTS = (
    "object == null",
    "oldObject != null",
    "object != oldObject",
    "[1].exists(object, object == 1)",
    "object.?spec.?nodeName.orValue('a') == 'a'",
    "object.?spec.?priority.orValue(1) == 1",
    "object.metadata.?labels[?'a'].orValue('') == ''",
    "object.spec.containers.all(c, has(c.image))",
    "object.spec.?containers.orValue([]).size() < 2",
    "type(object.spec.priority) == int",
    "string(object.spec.priority) == '1'",
    "object.spec.nodeName == object.metadata.name",
)
OF_NAMESPACES = ("namespaceObject == null", "namespaceObject.metadata.?labels[?'tier'].orValue('') == 'gold'")
OF_PARAMS = ("params == null", "params.data.on == 'yes'", "has(params.data.on)", "params.metadata.name == 'c'")
OF_FACTS = (
    "portableGpu.paths.size() > 0",
    "portableGpu.resource == 'amd.com/gpu'",
    "gpu.devices == null",
    "gpu.devices < 2",
)
LITERALS = ("'a'", "1", "0", "true", "false", "null", "{}")


def expressions(*more: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Expressions without an order of types: an object holds what it holds."""
    field, any_field, literal = st.sampled_from(FIELDS), st.sampled_from(ALL_FIELDS), st.sampled_from(LITERALS)
    atoms = st.one_of(
        field.map("!has({})".format),
        st.builds("!has({0}) || dyn({0}) != {1}".format, field, literal),
        st.builds("has({0}) && dyn({0}) == {1}".format, field, literal),
        any_field.map("has({})".format),
        st.builds("dyn({}) == {}".format, any_field, literal),
        st.sampled_from(OF_REQUEST),
        st.sampled_from(OF_OBJECTS),
        *[st.sampled_from(listed) for listed in more],
    )
    several = st.one_of(
        st.builds("({}) && ({})".format, atoms, atoms),
        st.builds("({}) || ({})".format, atoms, atoms),
        st.builds("!({})".format, atoms),
        st.builds("({}) ? ({}) : ({})".format, atoms, atoms, atoms),
    )
    return st.one_of(atoms, atoms, several)


SELECTORS = st.sampled_from(
    [
        {"matchLabels": {"tier": "gold"}},
        {"matchLabels": {"kubernetes.io/metadata.name": "team"}},
        {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["other"]}]},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    ]
)
RULES = st.sampled_from(
    [
        *[PODS] * 6,
        {**PODS, "operations": ["*"]},
        {**PODS, "operations": ["*"], "resources": ["pods", "pods/status"]},
        {**PODS, "apiGroups": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"]},
        {**PODS, "apiGroups": ["", "batch"], "resources": ["pods", "jobs"]},
        {**PODS, "resourceNames": ["p"]},
        {**PODS, "scope": "Namespaced"},
    ]
)
REFS = st.one_of(
    st.builds(
        lambda where, missing: {"name": "c", "parameterNotFoundAction": missing, **where},
        st.sampled_from([{"namespace": "site"}, {"namespace": "site"}, {}]),
        st.sampled_from(["Allow", "Deny"]),
    ),
    st.just({"selector": {"matchLabels": {"a": "x"}}, "namespace": "site", "parameterNotFoundAction": "Allow"}),
)
ACTIONS = st.sampled_from([("Deny",), ("Deny",), ("Warn",), ("Audit",), ("Warn", "Audit"), ("Deny", "Audit")])
MESSAGES = st.sampled_from(
    ["'a ' + object.metadata.name", "string(object.spec.nodeName)", "string(request.dryRun)", "'said'"]
)
RECORDED = st.sampled_from(
    [
        "string(has(object.spec.nodeName))",
        "object.spec.?nodeName.orValue('') == 'a' ? 'a' : ''",
        "string(object.spec.priority)",
    ]
)
CHANGES = st.sampled_from(
    [
        "Object{metadata: Object.metadata{labels: {'a': 'x'}}}",
        "Object{metadata: Object.metadata{labels: {'b': object.metadata.name}}}",
        "Object{spec: Object.spec{nodeName: 'a'}}",
        "[JSONPatch{op: 'add', path: '/spec/priority', value: 1}]",
        "[JSONPatch{op: 'remove', path: '/spec/nodeName'}]",
    ]
)


@st.composite
def _shared(draw: st.DrawFn, *, facts: bool) -> dict[str, Any]:
    """What policies of both kinds have; with what their expressions may read."""
    spec: dict[str, Any] = {"failurePolicy": draw(st.sampled_from(["Fail", "Ignore"]))}
    more: list[tuple[str, ...]] = []
    binding: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        spec["paramKind"] = PARAM_KIND
        more += [OF_PARAMS]
        if draw(st.integers(0, 5)):
            binding["paramRef"] = draw(REFS)
    annotations: dict[str, str] = {}
    if facts:
        annotations["facts"] = "portableGpu,gpu"
        more += [OF_FACTS]
    if draw(st.integers(0, 7)) == 0:
        annotations["updates"] = "spec"
    if draw(st.integers(0, 4)) == 0:
        annotations["expand"] = "pods"
    if draw(st.booleans()):
        conditions = draw(st.lists(expressions(*more), min_size=1, max_size=draw(st.sampled_from([1, 1, 2]))))
        spec["matchConditions"] = [{"name": f"c{n}", "expression": each} for n, each in enumerate(conditions)]
    resources = {}
    if draw(st.integers(0, 2)) == 0:
        resources["namespaceSelector"] = draw(SELECTORS)
    if draw(st.integers(0, 6)) == 0:
        resources["objectSelector"] = {"matchLabels": {"a": "x"}}
    if resources:
        binding["matchResources"] = resources
    return {"spec": spec, "more": more, "binding": binding, "annotations": annotations, "rule": draw(RULES)}


@st.composite
def validating_policies(draw: st.DrawFn, name: str) -> list[JSON]:
    made = draw(_shared(facts=draw(st.integers(0, 2)) == 0))
    read = expressions(*made["more"], OF_NAMESPACES) if draw(st.booleans()) else expressions(*made["more"])
    spec, annotations = made["spec"], made["annotations"]
    if draw(st.integers(0, 5)) == 0:
        annotations["phase"] = "both"
    if draw(st.integers(0, 5)) == 0:
        annotations["checks"] = "pod-resources"
        rules: list[Any] = ["problems.size() == 0"]
    else:
        rules = draw(st.lists(read, min_size=1, max_size=draw(st.sampled_from([1, 1, 2]))))
        if draw(st.integers(0, 3)) == 0:
            spec["variables"] = [{"name": "v", "expression": draw(read)}]
            rules += ["variables.v"]
    if draw(st.integers(0, 3)) == 0:
        rules[0] = {"expression": rules[0], "messageExpression": draw(MESSAGES), "reason": "Invalid"}
    if draw(st.integers(0, 2)) == 0:
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": draw(RECORDED)}]
        rules = rules if draw(st.booleans()) else []
    actions, binding = draw(ACTIONS), made["binding"]
    return validating(
        *rules, name=name, annotations=annotations, rule=made["rule"], actions=actions, binding=binding, **spec
    )


@st.composite
def mutating_policies(draw: st.DrawFn, name: str) -> list[JSON]:
    made = draw(_shared(facts=draw(st.integers(0, 2)) == 0))
    spec = {**made["spec"], "reinvocationPolicy": draw(st.sampled_from(["Never", "IfNeeded"]))}
    rule = {**made["rule"], "operations": ["CREATE", "UPDATE"]}
    changes = draw(st.lists(CHANGES, min_size=1, max_size=2))
    return mutating(*changes, name=name, annotations=made["annotations"], rule=rule, binding=made["binding"], **spec)


@st.composite
def policy_lists(draw: st.DrawFn) -> list[list[JSON]]:
    """Some policies; a second binding now and then."""
    made = []
    for number in range(draw(st.integers(2, 6))):
        kind = mutating_policies if draw(st.integers(0, 3)) == 0 else validating_policies
        policy, binding = draw(kind(f"p{number}"))
        made.append([policy, binding])
        if draw(st.integers(0, 7)) == 0:
            again = {**binding["spec"], "matchResources": {"namespaceSelector": draw(SELECTORS)}}
            made[-1].append({**binding, "metadata": {"name": f"p{number}-c"}, "spec": again})
    return made


GPU = {"name": "a", "image": "x", "resources": {"limits": {"gpu": "1"}}}
NO_LIMIT = {"name": "a", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
TYPED: dict[str, tuple[JSON, ...]] = {
    "nodeName": ("a", "x"),
    "hostNetwork": (True, False),
    "priority": (0, 1),
    "containers": ([], [{"name": "a", "image": "x"}], [GPU], [NO_LIMIT]),
    "overhead": ({}, {"cpu": "1"}),
}
ANYTHING = (None, True, False, 0, 1, 1.0, -0.0, "", "1", "a", "a" * 65, 2**60, [], {}, ["a"], {"b": 1})
METADATA: dict[str, tuple[JSON, ...]] = {
    "name": ("p", "q"),
    "generateName": ("p-", "a"),
    "labels": ({}, {"a": "x"}, {"b": "x"}),
}
CHANGED: dict[str, tuple[Any, ...]] = {
    "user_info": (UserInfo(username="bob", groups=("admins",)), UserInfo()),
    "dry_run": (True,),
    "options": ({"fieldManager": "x"},),
    "sub_resource": ("status",),
}


def some_of(values: dict[str, tuple[Any, ...]], chosen: Random, share: float = 0.5) -> dict[str, Any]:
    return {name: chosen.choice(each) for name, each in values.items() if chosen.random() < share}


def spec(chosen: Random) -> dict[str, JSON]:
    """A spec: sometimes with values of any type, which an API server would never send."""
    return some_of(TYPED if chosen.random() < 0.9 else dict.fromkeys(TYPED, ANYTHING), chosen)


def step(chosen: Random, view: ByKind) -> Step:
    """A request, mostly about a Pod as an API server sends it."""
    is_pod = chosen.random() < 0.9
    made = pod(**spec(chosen)) if is_pod else job(**spec(chosen))
    metadata = {"namespace": chosen.choice(("team", "team", "other")), **some_of(METADATA, chosen)}
    obj, old = {**made, "metadata": metadata}, None
    operation = chosen.choice(("CREATE",) * 6 + ("UPDATE", "DELETE"))
    if operation != "CREATE":
        old = {**obj, "spec": spec(chosen)} if is_pod and chosen.random() < 0.5 else obj
    sent = request(
        None if operation == "DELETE" else obj,
        operation,
        old,
        namespace=metadata["namespace"],
        name=metadata.get("name", ""),
        is_decoded=chosen.random() < 0.9,
        **some_of(CHANGED, chosen, 0.1),
    )
    return Step(sent, view)


def steps(views: list[ByKind], seed: int, length: int = 50) -> list[Step]:
    """Requests to a cluster that changes now and then."""
    chosen = Random(seed)
    view, made = views[0], []
    for _ in range(length):
        view = chosen.choice(views) if chosen.random() < 0.15 else view
        made.append(step(chosen, view))
    return made


@given(policy_lists(), st.lists(VIEWS, min_size=1, max_size=3), st.integers(0, 2**32))
@examples(10)
def test_random_policies_answer_as_if_they_were_never_asked(written, views, seed):
    assert_same(policies(*written), policies(*written), steps(views, seed))
