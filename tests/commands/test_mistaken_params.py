"""`webhook-config --check --live` reports parameters that have no effect."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.server import ApiServer
from webhook import assembly
from webhook.apimachinery.attributes import JSON
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader
from webhook.commands.installation import mistaken_params
from webhook.policy.load import load_policy_set
from webhook.settings.serving import ServerSettings


def _config_map(name: str, **data: str) -> JSON:
    return {"metadata": {"name": name, "namespace": "elsewhere"}, "data": data}


def test_a_key_or_a_rule_that_does_not_exist_is_named(server: ApiServer, tmp_path: Path) -> None:
    """claimgate may run in another namespace than its policies name. Then the check reads the namespace in which
    claimgate runs.
    """
    items = [
        _config_map("gpu-portable", resource="nvidia.com/gpu", resources="nvidia.com/gpu"),
        _config_map("kueue", deny="kueue-never/no-queue"),
        _config_map("kube-root-ca.crt", resources="x"),
    ]
    server.answers["/api/v1/namespaces/elsewhere/configmaps"] = 200, {"items": items}
    settings = ServerSettings()
    policies = load_policy_set(assembly.policy_folders_of_settings(settings), assembly.create_compile_options(settings))
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    key, rule = mistaken_params(cluster, policies, "elsewhere")
    assert key.startswith("ConfigMap elsewhere/gpu-portable: data.resources: unknown key `resources` of ConfigMap")
    assert key.endswith("did you mean `resource`?")
    assert rule.startswith("ConfigMap elsewhere/kueue: data.deny")
