"""Writes the files that are generated from the policies and from deploy/base: `make deploy`.

- deploy/base: webhooks.yaml, lookups.yaml and params.yaml, which follow from the shipped policies;
- overlays enforce, namespaced, object-opt-out and events: a patch that names every webhook of webhooks.yaml;
- overlay cluster-audit: a ClusterRole that may list what the shipped policies are about;
- overlay live-policies: the CustomResourceDefinitions of claimgate.dev;
- chart/values.schema.json: the schema of the value `config`, which is the schema of claimgate.yaml;
- chart/files: copies of the manifests that the chart renders, since a chart cannot read files outside of it.

tests/deploy/test_generated.py compares the files with the output of this program.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.export.webhook_rules import matched_resources_of_policies
from webhook.manifests.configuration import configuration_schema
from webhook.manifests.custom_resource_definitions import custom_resource_definitions
from webhook.policy.load import Options, load_policy_set
from webhook.workloads import table
from webhook.yamltext import yamlfile

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
OPT_IN = {"key": "claimgate.dev/admission", "operator": "In", "values": ["enabled"]}
OPT_OUT = {"key": "claimgate.dev/admission", "operator": "NotIn", "values": ["disabled"]}
COPIES = {
    **{f"{name}.yaml": f"base/{name}.yaml" for name in ("certificates", "deployment", "network", "priority", "rbac")},
    "service.yaml": "base/service.yaml",
    "events.yaml": "overlays/events/rights.yaml",
    "authorizer.yaml": "overlays/authorizer/asking.yaml",
    "live-policies-registration.yaml": "overlays/live-policies/registration.yaml",
    "live-policies-rights.yaml": "overlays/live-policies/rights.yaml",
    "autoscaler.yaml": "overlays/autoscaling/autoscaler.yaml",
    "cert-manager.yaml": "overlays/cert-manager/certificate.yaml",
    "pod-monitor.yaml": "overlays/monitoring/pod-monitor.yaml",
    "alerts.yaml": "overlays/monitoring/alerts.yaml",
    "cluster-audit.yaml": "overlays/cluster-audit/audit.yaml",
    "dashboard.json": "overlays/monitoring/dashboard.json",
}
"""The files of the chart that are copies, with their originals; generated files are added."""


def generated() -> dict[str, str]:
    """Return the text of every generated file, by its path in deploy/."""
    webhooks = _printed("webhook-config")
    files = {
        "base/webhooks.yaml": webhooks,
        "base/lookups.yaml": _printed("webhook-config", "--rbac"),
        "base/params.yaml": "---\n".join(
            path.read_text() for path in sorted((ROOT / "policies").glob("*/params.yaml"), key=str)
        ),
    }
    configurations = [document.value for document in yamlfile.load(webhooks)]
    files["overlays/enforce/fail.yaml"] = _patch(
        configurations, lambda _: {"failurePolicy": "Fail", "timeoutSeconds": 10}
    )
    files["overlays/namespaced/opt-in.yaml"] = _patch(configurations, _opted_in)
    files["overlays/object-opt-out/opt-out.yaml"] = _patch(
        configurations, lambda _: {"objectSelector": {"matchExpressions": [OPT_OUT]}}
    )
    files["overlays/events/side-effects.yaml"] = _patch(configurations, lambda _: {"sideEffects": "NoneOnDryRun"})
    files["overlays/cluster-audit/lists.yaml"] = yamlfile.dump(_lists())
    files["overlays/live-policies/definitions.yaml"] = "---\n".join(map(yamlfile.dump, custom_resource_definitions()))
    chart = {f"chart/files/{name}": (DEPLOY / origin).read_text() for name, origin in COPIES.items()}
    chart["chart/files/definitions.yaml"] = files["overlays/live-policies/definitions.yaml"]
    chart["chart/files/cluster-audit-lists.yaml"] = files["overlays/cluster-audit/lists.yaml"]
    chart["chart/values.schema.json"] = _schema_of_values()
    made = {f"chart/files/{Path(name).name}": text for name, text in files.items() if name.startswith("base/")}
    return {**files, **chart, **made}


def _schema_of_values() -> str:
    """Return the schema of the chart's values; `config` has the schema of claimgate.yaml."""
    schema = json.loads((DEPLOY / "chart" / "values.schema.json").read_text())
    config = configuration_schema()
    schema["$defs"] = config.pop("$defs")
    schema["properties"]["config"] = {name: config[name] for name in ("type", "additionalProperties", "properties")}
    return f"{json.dumps(schema, indent=2)}\n"


def _lists() -> dict[str, Any]:
    """Return the ClusterRole for audits of a cluster, which may list every kind that the shipped policies are
    about.
    """
    loaded = load_policy_set([ROOT / "policies"], Options(table=table.load_table()))
    plurals: dict[str, set[str]] = {}
    for _, wish in matched_resources_of_policies(loaded, Phase.VALIDATE):
        if "/" not in wish.resource:
            plurals.setdefault(wish.group, set()).add(wish.resource)
    rules = [{"apiGroups": [group], "resources": sorted(names), "verbs": ["list"]} for group, names in plurals.items()]
    rules.sort(key=lambda rule: rule["apiGroups"])
    metadata = {"name": "claimgate-audit"}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _opted_in(webhook: Any) -> dict[str, Any]:
    return {"namespaceSelector": {"matchExpressions": [*webhook["namespaceSelector"]["matchExpressions"], OPT_IN]}}


def _patch(configurations: list[Any], change: Any) -> str:
    """Return a strategic merge patch, which finds webhooks by their names, unlike a JSON patch."""
    patches = [
        {
            "apiVersion": one["apiVersion"],
            "kind": one["kind"],
            "metadata": {"name": one["metadata"]["name"]},
            "webhooks": [{"name": webhook["name"], **change(webhook)} for webhook in one["webhooks"]],
        }
        for one in configurations
    ]
    return "---\n".join(map(yamlfile.dump, patches))


def _printed(*arguments: str) -> str:
    out = StringIO()
    with redirect_stdout(out):
        code = run_command_line(list(arguments))
    if code:
        raise SystemExit(code)
    return out.getvalue()


def main() -> None:
    """Write the files that differ, and print their names."""
    for name, text in generated().items():
        path = DEPLOY / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            sys.stdout.write(f"deploy/{name}\n")


if __name__ == "__main__":
    main()
