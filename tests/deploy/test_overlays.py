"""Overlays fit the base: flags and mounts exist, and kubectl renders them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.helm import kustomized
from tests.yamldata import document
from webhook import __version__
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declared_settings

OVERLAYS = Path(__file__).parents[2] / "deploy" / "overlays"
OPERATIONS = {"audit-only", "autoscaling", "cluster-audit", "monitoring", "namespaced", "warn-only"}
NAMES = sorted(folder.name for folder in OVERLAYS.iterdir())


def rendered(name: str) -> list[dict[str, Any]]:
    return kustomized(f"overlays/{name}")


def of_kind(name: str, kind: str) -> dict[str, Any]:
    (one,) = [each for each in rendered(name) if (each["kind"], each["metadata"]["name"]) == (kind, "claimgate")]
    return one


@pytest.mark.parametrize("name", NAMES)
def test_an_overlay_is_named_in_the_guide_and_one_about_security_in_the_threat_model(name: str) -> None:
    assert f"| `{name}` |" in (OVERLAYS.parent / "README.md").read_text()
    page = (OVERLAYS.parents[1] / "docs" / "threat-model.md").read_text()
    assert name in OPERATIONS or f"deploy/overlays/{name}/README.md" in page


@pytest.mark.parametrize("name", NAMES)
def test_kubectl_renders_an_overlay(name: str) -> None:
    assert {("Deployment", "claimgate"), ("Service", "claimgate")} <= {
        (each["kind"], each["metadata"]["name"]) for each in rendered(name)
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_container_of_an_overlay_has_the_image_of_this_version(name: str) -> None:
    images = set(re.findall(r"'image': '([^']*)'", str(rendered(name))))
    assert images == {f"claimgate:{__version__}"}


def test_the_overlay_about_client_certificates_uses_existing_flags_and_mounted_files() -> None:
    pod = of_kind("client-certificates", "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    flags = {setting.flag for setting in declared_settings(ServerSettings)}
    given = dict(argument.partition("=")[::2] for argument in container["args"] if argument.startswith("--"))
    assert set(given) <= flags
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert str(Path(given["--client-ca"]).parent) in places
    assert {"configMap": {"name": "claimgate-client-ca"}, "name": "client-ca"} in pod["volumes"]
    assert "--probe-port" in given  # a kubelet has no certificate


def test_the_api_server_shows_its_certificate_to_the_service() -> None:
    folder = OVERLAYS / "client-certificates"
    (user,) = document(folder / "kubeconfig.yaml")["users"]
    assert user["name"] == "claimgate.claimgate-system.svc"
    plugins = document(folder / "admission-configuration.yaml")["plugins"]
    assert [each["name"] for each in plugins] == ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"]


def test_only_named_addresses_reach_the_port_of_reviews() -> None:
    rules = of_kind("control-plane-network", "NetworkPolicy")["spec"]["ingress"]
    by_port = {port["port"]: rule.get("from") for rule in rules for port in rule["ports"]}
    assert by_port["https"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    assert by_port["probes"] is None


def test_registration_may_change_named_objects_and_create_none() -> None:
    roles = {one["metadata"]["name"]: one for one in rendered("live-policies") if one["kind"] == "ClusterRole"}
    for rule in roles["claimgate-registration"]["rules"]:
        assert {"create", "delete", "escalate", "bind", "*"}.isdisjoint(rule["verbs"])
        if "patch" in rule["verbs"]:
            assert rule.get("resourceNames") or all(each.endswith("/status") for each in rule["resources"])
    assert "rules" not in roles["claimgate-live-lookups"], "applying again would take away what stored policies need"
    assert "rules" not in roles["claimgate-grantable"]
    changing = {verb for rule in roles["claimgate-live-policies"]["rules"] for verb in rule["verbs"]}
    assert changing == {"get", "list", "watch", "patch"}
