"""deploy/base matches the code in webhooks, look-ups, parameters and flags, and its Pods have few rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.yamldata import document, documents
from webhook import __version__, assembly
from webhook.cli import run_command_line
from webhook.export.cluster_role import cluster_role
from webhook.server import memory_bounds
from webhook.settings.serving import ServerSettings
from webhook.settings.shared import Settings
from webhook.workloads.table import Table

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "base"
OVERLAYS = ROOT / "deploy" / "overlays"


def manifests(*names: str) -> list[dict[str, Any]]:
    kustomization = document(BASE / "kustomization.yaml")
    files = names or kustomization["resources"]
    return [found for file in files for found in documents(BASE / file)]


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = [m for m in manifests() if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


PODS = {
    "the server": one("Deployment", "claimgate")["spec"]["template"]["spec"],
    "certificates": one("Deployment", "claimgate-certificates")["spec"]["template"]["spec"],
}


def test_every_file_is_in_the_kustomization() -> None:
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(document(BASE / "kustomization.yaml")["resources"])


def test_webhooks_are_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config"]) == 0
    assert (BASE / "webhooks.yaml").read_text() == capsys.readouterr().out, "the policies changed: run make deploy"


def test_the_server_may_read_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["webhook-config", "--rbac"]) == 0
    assert (BASE / "lookups.yaml").read_text() == capsys.readouterr().out, "the policies changed: run make deploy"
    binding = one("ClusterRoleBinding", "claimgate")
    assert binding["roleRef"]["name"] == one("ClusterRole", "claimgate")["metadata"]["name"]


def test_the_server_may_read_the_owners_of_pods_of_a_trainjob() -> None:
    table = assembly.assemble_policies_and_context(Settings()).table
    (reference,) = table.row("trainer.kubeflow.org", "TrainJob").references
    rules = one("ClusterRole", "claimgate")["rules"]
    allowed = {name for rule in rules if rule["apiGroups"] == ["trainer.kubeflow.org"] for name in rule["resources"]}
    assert allowed == {table.row("trainer.kubeflow.org", kind).resource for kind in reference.kinds}


def test_parameters_are_those_of_the_shipped_policies() -> None:
    shipped = [
        found for path in sorted((ROOT / "policies").glob("*/params.yaml"), key=str) for found in documents(path)
    ]
    assert manifests("params.yaml") == shipped, "the policies changed: run make deploy"


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())
def test_pods_are_restricted(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())
def test_arguments_in_manifests_exist_in_the_command_line(
    pod: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for container in pod["containers"]:
        words = [word for word in container["args"] if not word.startswith("-")]
        flags = [word.partition("=")[0] for word in container["args"] if word.startswith("-")]
        assert run_command_line([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(f"{flag} " in shown for flag in flags), shown


def test_no_webhook_fails_closed_before_enforce() -> None:
    webhooks = [webhook for found in manifests("webhooks.yaml") for webhook in found["webhooks"]]
    assert {(one["failurePolicy"], one["timeoutSeconds"]) for one in webhooks} == {("Ignore", 5)}
    enforced = [webhook for found in documents(OVERLAYS / "enforce" / "fail.yaml") for webhook in found["webhooks"]]
    assert [one["name"] for one in enforced] == [one["name"] for one in webhooks]
    assert {(one["failurePolicy"], one["timeoutSeconds"]) for one in enforced} == {("Fail", 10)}


def test_the_authorizer_needs_a_server_flag_and_one_right() -> None:
    (patch,) = document(OVERLAYS / "authorizer" / "flag.yaml")
    assert (patch["path"], patch["value"]) == ("/spec/template/spec/containers/0/args/-", "--authorizer")
    assert PODS["the server"]["containers"][0]["args"][0] == "serve"
    role, binding = documents(OVERLAYS / "authorizer" / "asking.yaml")
    assert role["rules"] == cluster_role("claimgate", (), Table(()), may_ask=True)["rules"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == one("ClusterRoleBinding", "claimgate")["subjects"]


def test_a_new_version_changes_nothing_that_is_immutable() -> None:
    assert not {found["kind"] for found in manifests()} & {"Job", "Pod"}


def test_cert_manager_replaces_the_certificates_process() -> None:
    own = {(found["kind"], found["metadata"]["name"]) for found in manifests("certificates.yaml")}
    patches = [document(each["patch"]) for each in document(OVERLAYS / "cert-manager/kustomization.yaml")["patches"]]
    removed = [found for found in patches if isinstance(found, dict) and found.get("$patch") == "delete"]
    assert {(found["kind"], found["metadata"]["name"]) for found in removed} == own
    issued = {
        found["metadata"]["name"]: found["spec"] for found in documents(OVERLAYS / "cert-manager/certificate.yaml")
    }
    assert issued["claimgate"]["secretName"] == PODS["the server"]["volumes"][0]["secret"]["secretName"]


def test_certificate_names_match_service_and_configurations() -> None:
    arguments = PODS["certificates"]["containers"][0]["args"]
    namespace, service = one("Namespace", "claimgate-system"), one("Service", "claimgate")
    place = f"{namespace['metadata']['name']}/{service['metadata']['name']}"
    configurations = {m["metadata"]["name"] for m in manifests("webhooks.yaml")}
    volume = PODS["the server"]["volumes"][0]["secret"]
    assert f"--service={place}" in arguments
    assert f"--owner-namespace={namespace['metadata']['name']}" in arguments
    assert [f"--inject={name}" for name in configurations] == [a for a in arguments if a.startswith("--inject")]
    assert f"--secret={namespace['metadata']['name']}/{volume['secretName']}" in arguments
    assert {item["key"] for item in volume["items"]} == {"tls.crt", "tls.key"}
    for webhook in [w for m in manifests("webhooks.yaml") for w in m["webhooks"]]:
        client = webhook["clientConfig"]["service"]
        assert (f"{client['namespace']}/{client['name']}", client["port"]) == (
            place,
            service["spec"]["ports"][0]["port"],
        )


def test_rotation_may_change_only_its_secret_and_its_webhooks() -> None:
    role, cluster_role = one("Role", "claimgate-certificates"), one("ClusterRole", "claimgate-certificates")
    for rule in [*role["rules"], *cluster_role["rules"]]:
        assert rule["verbs"] == ["create"] or rule["resourceNames"] in (
            ["claimgate-certificates"],
            ["claimgate"],
            ["claimgate-system"],
        )


def test_one_of_two_replicas_survives_the_loss_of_a_node() -> None:
    deployment, budget = one("Deployment", "claimgate")["spec"], one("PodDisruptionBudget", "claimgate")["spec"]
    assert (deployment["replicas"], deployment["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert budget["minAvailable"] == 1
    for selector in (budget["selector"], one("NetworkPolicy", "claimgate")["spec"]["podSelector"]):
        assert selector == deployment["selector"]
    spread = {rule["topologyKey"] for rule in PODS["the server"]["topologySpreadConstraints"]}
    assert spread == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}


def test_pods_may_call_only_the_api_server() -> None:
    for name in ("claimgate", "claimgate-certificates"):
        policy = one("NetworkPolicy", name)["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert policy["egress"] == [{"ports": [{"port": 443}, {"port": 6443}]}]
    assert "ingress" not in one("NetworkPolicy", "claimgate-certificates")["spec"]


def test_pods_have_their_own_priority_class() -> None:
    assert {pod["priorityClassName"] for pod in PODS.values()} == {
        one("PriorityClass", "claimgate")["metadata"]["name"]
    }
    assert one("PriorityClass", "claimgate")["value"] == 1_000_000_000  # the largest object of a user


def test_the_memory_limit_covers_all_bounds_and_nodes_and_classes() -> None:
    (container,) = PODS["the server"]["containers"]
    started = 80 << 20  # the memory of a server with the shipped policies
    bounds = memory_bounds.MemoryBounds(ServerSettings(live=True), started).total
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi")) << 20
    assert bounds + (96 << 20) <= limit <= bounds + (256 << 20)


def test_the_server_has_time_to_drain() -> None:
    (drain,) = [a for a in PODS["the server"]["containers"][0]["args"] if a.startswith("--drain=")]
    assert PODS["the server"]["terminationGracePeriodSeconds"] >= int(drain.partition("=")[2]) + 15


def test_the_image_is_this_version() -> None:
    (image,) = document(BASE / "kustomization.yaml")["images"]
    assert (image["name"], image["newTag"]) == ("claimgate", __version__)


def test_the_dockerfile_copies_what_the_wheel_needs_and_ends_without_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    packed = re.findall(r'^"?([\w/]+)"? = "webhook/_\w+"', project, re.MULTILINE)
    assert packed
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for folder in [*packed, "webhook", "certs"]:
        assert f"COPY {folder} {folder}\n" in text
        assert f"!{folder}" in ignored
    assert text.count("--no-deps --require-hashes") == text.count("--require-hashes") == 2
    assert text.rindex("USER 65532:65532") > text.rindex("FROM ")
