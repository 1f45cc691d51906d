"""Mutations of custom kinds have the results of kube-apiserver 1.36.2.

In custom_kinds.jsonl and typed_kind.jsonl of tests/data/configuration, the first line has the schemas of kinds. Other
lines have mutations, the object before, and the object after a dry-run create or the error.
"""

import json
import time
from pathlib import Path

from tests.fuzz import live
from tests.fuzz.compare import difference, held, own
from tests.fuzz.live import Question, Told
from tests.literals import PODS, mutating, namespace, policies, request
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context

DATA = Path(__file__).parents[1] / "data" / "configuration"
RULE = {**PODS, "apiGroups": ["ex.io"], "resources": ["looses", "stricts"]}


def definition(kind, spec):
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.ex.io"},
        "spec": {"group": "ex.io", "names": {"kind": kind}, "versions": [{"name": "v1", "schema": schema}]},
    }


def custom(kind, spec):
    return {"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "x", "namespace": "team"}, "spec": spec}


def lines(name):
    return map(json.loads, (DATA / name).read_text(encoding="utf-8").splitlines())


def outcome(expressions, obj, cluster, **more):
    """Return the spec after the mutations, or the error of the first mutation that fails."""
    made, decisions = apply_mutating_policies(
        request_context(policies(mutating(*expressions, rule=RULE)), request(obj, **more), cluster)
    )
    errors = [decision.message for decision in decisions if decision.evaluation == "error"]
    return {"error": errors[0]} if errors else {"after": made["spec"]}


def test_custom_kinds_are_changed_as_the_api_server_changes_them():
    first, *rows = lines("custom_kinds.jsonl")
    cluster = FilesCluster([namespace(), *(definition(kind, spec) for kind, spec in first["schemas"].items())])
    missed = []
    for row in rows:
        found = outcome([row["expression"]], custom(row["kind"], row["before"]), cluster)
        if found not in ({"after": row.get("after")}, {"error": row.get("error")}):
            missed.append((row, found))
    assert missed == []


def test_random_mutations_by_a_schema_have_the_api_servers_outcome():
    first, *rows = lines("typed_kind.jsonl")
    kind, schema = "Typed", first["schema"]
    cluster, missed = held(live.definition(kind, schema)), []
    for row in rows:
        told = Told("allowed", spec=row["after"]) if "after" in row else denied(row)
        mine = own(Question(row["policy"], {}, row["spec"]), kind, schema, cluster)
        if not (how := difference(mine, told)).startswith("same"):
            missed.append((how, row, mine))
    assert missed == []
    assert len(rows) == 260


def denied(row):
    return Told("denied", row["code"], row["reason"], row["message"])


PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "port"],
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}, "v": {"type": "string"}},
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "flag": {"type": "boolean", "default": True},
        "ports": PORTS,
        "deep": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {"default": "y"}}}},
    },
}
KNOWN = FilesCluster([namespace(), definition("Strict", SPEC)])
CONVERSION = "error applying patch: failed to convert original object to typed object: "


def strict(*expressions, cluster=KNOWN, **spec):
    return outcome(expressions, custom("Strict", spec), cluster)


def test_items_of_a_list_merge_by_keys_that_may_have_defaults():
    found = strict("Object{spec: Object.spec{ports: [Object.spec.ports{name: 'a', v: 'x'}]}}", ports=[{"name": "a"}])
    assert found["after"]["ports"] == [{"name": "a", "v": "x", "port": 80}]


def test_defaults_are_filled_in_after_each_mutation_and_the_next_reads_them():
    found = strict(
        "Object{spec: Object.spec{deep: {'k': Object.spec.deep{}}}}",
        "Object{spec: Object.spec{n: object.spec.deep.k.y == 'y' && object.spec.flag ? 1 : 2}}",
    )
    assert found["after"] == {"deep": {"k": {"y": "y"}}, "flag": True, "n": 1}


def test_an_unknown_field_of_a_json_patch_fails_a_later_merge_and_is_pruned_at_the_end():
    unknown, known = "[JSONPatch{op: 'add', path: '/spec/zz', value: 1}]", "Object{spec: Object.spec{n: 1}}"
    assert strict(known, unknown)["after"] == {"flag": True, "n": 1}
    assert strict(unknown, known) == {"error": f"{CONVERSION}.spec.zz: field not declared in schema"}


def test_an_unknown_field_that_was_sent_does_no_harm():
    """An API server removes an unknown field before it stores or sends the object."""
    assert strict("Object{spec: Object.spec{n: 1}}", zz=1)["after"] == {"flag": True, "n": 1}


def test_an_object_that_does_not_fit_its_schema_cannot_be_changed():
    found = strict("Object{spec: Object.spec{n: 1}}", flag="yes")
    assert found == {"error": f"{CONVERSION}.spec.flag: expected boolean, got &{{yes}}"}
    assert strict("Object{spec: Object.spec{n: 1}}", ports=[{"name": "a"}, {"name": "a"}], n=None)["after"]["n"] == 1


def test_the_result_of_a_json_patch_gets_defaults_and_is_pruned():
    assert strict("[JSONPatch{op: 'add', path: '/spec/zz', value: 1}]")["after"] == {"flag": True}
    removal = "[JSONPatch{op: 'remove', path: '/spec/flag'}]"
    assert strict(removal, removal, flag=False)["after"] == {"flag": True}


def test_a_kind_without_a_definition_has_any_fields():
    found = strict("Object{spec: Object.spec{zz: 1}}", cluster=FilesCluster([namespace()]))
    assert found["after"] == {"zz": 1}


class Unknowing(FilesCluster):
    def get(self, gvk, namespace, name):
        if gvk.kind == "CustomResourceDefinition":
            raise LookupFailed(f"{gvk.kind} {name}: not synced yet")
        return super().get(gvk, namespace, name)


def test_an_object_with_an_unknown_schema_is_not_changed():
    cluster = Unknowing([namespace()])
    found = strict("Object{spec: Object.spec{n: 1}}", cluster=cluster)
    assert found == {"error": "CustomResourceDefinition stricts.ex.io: not synced yet"}
    assert strict("[JSONPatch{op: 'add', path: '/spec/n', value: 1}]", cluster=cluster) == {"after": {"n": 1}}


def test_pruning_that_takes_too_long_is_the_policies_failure():
    slow = Deadline(time.monotonic() + 0.05)
    spec = {"deep": {str(number): {"y": "y"} for number in range(200_000)}, "n": 1}
    expressions = ["Object{spec: Object.spec{n: 2}}"]
    _, decisions = apply_mutating_policies(
        request_context(policies(mutating(*expressions, rule=RULE)), request(custom("Strict", spec)), KNOWN, slow)
    )
    assert [decision.action for decision in decisions][-1] == "deny"
