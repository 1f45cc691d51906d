"""Policies and requests as literals, for tests of several folders."""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.policy.load import Options, load_documents, load_policy_set
from webhook.workloads import table
from webhook.yamltext.yamlfile import Document

GROUP = "admissionregistration.k8s.io/v1"
TABLE = table.load_table()
OPTIONS = Options(table=TABLE)
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
CONFIG_MAPS = {**PODS, "resources": ["configmaps"]}


def validating(*rules, name="v", annotations=None, rule=PODS, actions=("Deny",), binding=None, **spec):
    """Return a policy and its binding. Each rule is an expression or a whole validation."""
    found = [rule if isinstance(rule, dict) else {"expression": rule} for rule in rules]
    policy = {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "annotations": _prefixed(annotations)},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": found, **spec},
    }
    return [policy, _binding("Validating", name, {"validationActions": list(actions), **(binding or {})})]


def mutating(*changes, name="m", annotations=None, rule=PODS, binding=None, **spec):
    """Return a policy and its binding. A change that starts with `[` is a JSONPatch."""
    policy = {
        "apiVersion": GROUP,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name, "annotations": _prefixed(annotations)},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "mutations": [_change(change) for change in changes],
            "reinvocationPolicy": "Never",
            **spec,
        },
    }
    return [policy, _binding("Mutating", name, binding or {})]


def _prefixed(annotations):
    return {f"claimgate.dev/{key}": value for key, value in (annotations or {}).items()}


def _change(text):
    if text.startswith("["):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


def _binding(kind, name, spec):
    return {
        "apiVersion": GROUP,
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": {"name": f"{name}-b"},
        "spec": {"policyName": name, **spec},
    }


def policies(*lists, registry=SHIPPED):
    """Compile policies. Arguments are results of validating() and mutating(), or other objects."""
    written = [each for found in lists for each in (found if isinstance(found, list) else [found])]
    return load_documents(
        [Document(value, "test.yaml", number) for number, value in enumerate(written)],
        replace(OPTIONS, registry=registry),
    )


@cache
def shipped_policies(*folders):
    """Return the shipped policies of some folders, or all. They are compiled once for all tests."""
    root = Path(shipped.policies_folder())
    return load_policy_set([root / folder for folder in folders] or [root], OPTIONS)


def request(obj, operation="CREATE", old=None, resource=None, **changes):
    """Return a request. Its default resource is the plural of the kind."""
    known = obj or old
    group, _, version = known["apiVersion"].rpartition("/")
    kind = GroupVersionKind(group, version, known["kind"])
    row = TABLE.row(group, known["kind"])
    plural = resource or (row.resource if row else known["kind"].lower() + "s")
    names = GroupVersionResource(group, version, plural)
    metadata = known.get("metadata") or {}
    return Attributes(
        **{
            "uid": "u",
            "kind": kind,
            "resource": names,
            "operation": Operation(operation),
            "request_kind": kind,
            "request_resource": names,
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "user_info": UserInfo(username="alice", groups=("developers",)),
            "object": obj,
            "old_object": old,
            **changes,
        }
    )


def pod(**spec):
    """Return a Pod in the namespace team."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}, "spec": spec}


def job(*, metadata=None, **spec):
    template = {"spec": spec} if metadata is None else {"metadata": metadata, "spec": spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team"},
        "spec": {"template": template},
    }


def namespace(name="team", **labels):
    shown = {"kubernetes.io/metadata.name": name, **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": shown}}
