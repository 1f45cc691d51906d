"""The chart installs what the kustomize base and overlays install, and refuses values without a meaning."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.keep import Days, issue
from certs.store import Folder
from tests import quick_yaml
from tests.commands.test_serve import policy, served
from tests.deploy.helm import CHART, NAMESPACE, helm, kustomized, rendered, template
from tests.rows import some_quickly
from webhook import __version__
from webhook.apimachinery.attributes import JSON
from webhook.export.exemptions import exemption_conditions
from webhook.manifests.configuration import read_configuration

OVERLAPS = {
    "base": (),
    "overlays/enforce": ("enforce=true",),
    "overlays/audit-only": ("enforcementAction=audit",),
    "overlays/warn-only": ("enforcementAction=warn",),
    "overlays/namespaced": ("webhooks.optIn=true",),
    "overlays/object-opt-out": ("webhooks.objectOptOut=true",),
    "overlays/cert-manager": ("certificates.issuer=cert-manager",),
    "overlays/authorizer": ("authorizer=true",),
    "overlays/events": ("events=true",),
    "overlays/live-policies": ("livePolicies=true",),
    "overlays/cluster-audit": ("clusterAudit.enabled=true",),
    "overlays/client-certificates": ("clientCertificates.enabled=true",),
    "overlays/control-plane-network": ("networkPolicy.controlPlane[0]=192.0.2.0/24",),
    "overlays/autoscaling": ("autoscaling.enabled=true",),
    "overlays/monitoring": ("monitoring.podMonitor=true", "monitoring.alerts=true", "monitoring.dashboard=true"),
}
REFUSED = {
    "a word for a number": ("replicas=two", "replicas"),
    "an action that does not exist": ("enforcementAction=block", "enforcementAction"),
    "a value that does not exist": ("replica=3", "replica"),
    "a configuration with a typo": ("config.level.groups.storage=warn", "config"),
    "a ConfigMap that no policy has": ("params.kue.deny=x", "there are device-failures"),
    "a key that a ConfigMap does not have": ("params.kueue.denny=x", "it has advice, audit, deny, kueue, off, warn"),
    "a key that a ConfigMap does not have, in the configuration": (
        "config.params.kueue.denny=x",
        "config.params.kueue.denny: the ConfigMap has no such key",
    ),
    "enforce with an action other than deny": (
        "enforce=true,enforcementAction=audit",
        "set enforcementAction to deny",
    ),
    "values of an earlier version": ("test=null", "--reset-then-reuse-values"),
    "no authority": ("certificates.issuer=none", "certificates.caBundle is empty"),
    "an invalid digest": ("image.digest=latest", "digest"),
    "a kind of reports that does not exist": ("clusterAudit.publish=kyverno", "clusterAudit"),
    "an audit of zero shards": ("clusterAudit.shards=0", "clusterAudit"),
    "a collector that is not an address": ("traces=collector:4318", "traces"),
    "conditions that would be lost": (
        "livePolicies=true,webhooks.matchConditions[0].name=a,webhooks.matchConditions[0].expression=true",
        "webhooks.matchConditions",
    ),
    "policies that nothing registers": ("policies.a\\.yaml=x", "policies need livePolicies"),
    "exceptions of a kind that nothing installs": (
        "config.policyExceptions[0].rules[0]=kueue,config.policyExceptions[0].maxDays=3",
        "config.policyExceptions needs livePolicies",
    ),
    "a policy that is not a file": ("livePolicies=true,policies.a=x", "policies"),
    "two monitors": ("monitoring.podMonitor=true,monitoring.serviceMonitor=true", "count every metric twice"),
    "an invalid interval": ("monitoring.interval=often", "interval"),
    "fewer replicas at most than at least": ("autoscaling.minReplicas=9", "maxReplicas is less than"),
    "a probe that does not exist": ("probes.ready.periodSeconds=2", "probes"),
    "a strategy that does not exist": ("strategy.type=Canary", "strategy"),
    "an invalid object": ("extraObjects[0].kind=ConfigMap", "extraObjects"),
    "an invalid budget": ("podDisruptionBudget.minAvailable=most", "minAvailable"),
    "an argument that is not a flag": ("extraArgs[0]=serve", "extraArgs"),
}


def compared(found: dict[str, Any]) -> JSON:
    """Return an object without the fields that only helm or only kubectl adds."""
    metadata = dict(found["metadata"])
    own = ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart")
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in own}
    if found["kind"] == "CustomResourceDefinition":
        assert metadata.pop("annotations", {}).keys() <= {"helm.sh/resource-policy"}
    return {**found, "metadata": metadata}


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], JSON]:
    return {(one["kind"], one["metadata"]["name"]): compared(one) for one in objects}


@pytest.mark.parametrize("folder", some_quickly(OVERLAPS, 3))
def test_the_chart_renders_the_objects_of_kustomize(folder: str) -> None:
    ours, theirs = by_name(rendered(*OVERLAPS[folder])), by_name(kustomized(folder))
    theirs.pop(("Namespace", NAMESPACE))  # helm creates the namespace with --create-namespace
    assert ours.keys() == theirs.keys()
    for name, one in theirs.items():
        assert ours[name] == one, name


@pytest.mark.parametrize(("value", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_value_is_refused_by_name(value: str, said: str) -> None:
    assert said in template([value], code=1).stderr


EVERYTHING = (
    *("livePolicies=true", "authorizer=true", "clusterAudit.enabled=true", "autoscaling.enabled=true"),
    *("monitoring.podMonitor=true", "monitoring.alerts=true", "clientCertificates.enabled=true"),
)


@pytest.mark.parametrize("issuer", ["claimgate", "cert-manager"])
def test_another_release_namespace_is_used_everywhere(issuer: str) -> None:
    values = *EVERYTHING, f"certificates.issuer={issuer}"
    here, there = by_name(rendered(*values)), by_name(rendered(*values, namespace="gates"))
    assert NAMESPACE not in json.dumps(list(there.values()))
    own = ', "--own-namespace=gates"'
    assert {name: json.loads(json.dumps(one).replace(own, "")) for name, one in there.items()} == {
        name: json.loads(json.dumps(one).replace(NAMESPACE, "gates")) for name, one in here.items()
    }
    told = {name for name, one in there.items() if own in json.dumps(one)}
    assert told == {
        ("Deployment", "claimgate"),
        ("Deployment", "claimgate-registration"),
        ("CronJob", "claimgate-audit"),
    }


def test_lint_finds_nothing() -> None:
    told = helm("lint", "--strict", "--namespace", NAMESPACE, "--kube-version", "1.36.2", str(CHART)).stdout
    assert "[ERROR]" not in told
    assert "[WARNING]" not in told


def test_pod_settings_of_the_chart_apply_to_both_deployments() -> None:
    values = ("tolerations[0].operator=Exists", "nodeSelector.role=system", "imagePullSecrets[0].name=pull")
    digest = "sha256:" + "a" * 64
    made = by_name(rendered(*values, "image.repository=r.example/c", f"image.digest={digest}", "podLabels.team=ml"))
    for name in ("claimgate", "claimgate-certificates"):
        pod = made["Deployment", name]["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == {"role": "system"}
        assert pod["tolerations"] == [{"operator": "Exists"}]
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert pod["containers"][0]["image"] == f"r.example/c@{digest}"


def test_the_audit_of_the_cluster_follows_the_values() -> None:
    audit = "clusterAudit.enabled=true", "clusterAudit.shards=9", "clusterAudit.parallelism=3"
    how = "clusterAudit.publish=policyreport", "clusterAudit.failsOnly=false", "clusterAudit.schedule=5 1 * * 0"
    made = by_name(rendered(*audit, *how, "nodeSelector.role=system", "networkPolicy.enabled=false"))
    cron_job = made["CronJob", "claimgate-audit"]["spec"]
    job = cron_job["jobTemplate"]["spec"]
    assert (cron_job["schedule"], job["completions"], job["parallelism"]) == ("5 1 * * 0", 9, 3)
    pod = job["template"]["spec"]
    assert pod["nodeSelector"] == {"role": "system"}
    assert "priorityClassName" not in pod  # an audit must not evict other pods
    (container,) = pod["containers"]
    assert "--shard=$(JOB_COMPLETION_INDEX)/9" in container["args"]
    assert "--publish=policyreport" in container["args"]
    assert "--fails-only" not in container["args"]
    (rule,) = made["ClusterRole", "claimgate-audit-reports"]["rules"]
    assert (rule["apiGroups"], rule["resources"]) == (["wgpolicyk8s.io"], ["clusterpolicyreports", "policyreports"])
    assert ("NetworkPolicy", "claimgate-audit") not in made


def test_params_and_bundles_are_those_of_the_values() -> None:
    own = "params.gpu-portable.resource\\.team-a=amd.com/gpu", "config.levels.groups.storage=warn"
    made = by_name(
        rendered(*own, "params.kueue.deny=kueue-never/x", "certificates.issuer=none", "certificates.caBundle=YQ==")
    )
    assert made["ConfigMap", "kueue"]["data"]["deny"] == "kueue-never/x"
    assert made["ConfigMap", "kueue"]["data"]["off"] == ""
    assert made["ConfigMap", "gpu-portable"]["data"]["resource.team-a"] == "amd.com/gpu"
    assert quick_yaml.load(made["ConfigMap", "claimgate-config"]["data"]["claimgate.yaml"]) == {
        "levels": {"groups": {"storage": "warn"}}
    }
    pod = made["Deployment", "claimgate"]["spec"]["template"]["spec"]
    assert {"name": "CLAIMGATE_CONFIG", "value": "/etc/claimgate/config/claimgate.yaml"} in pod["containers"][0]["env"]
    assert {"name": "config", "configMap": {"name": "claimgate-config"}} in pod["volumes"]
    webhooks = made["ValidatingWebhookConfiguration", "claimgate"]["webhooks"]
    assert {one["clientConfig"]["caBundle"] for one in webhooks} == {"YQ=="}
    assert ("Deployment", "claimgate-certificates") not in made


SITE = """
webhooks:
  objectSelector: {matchLabels: {team: ml}}
  matchConditions: [{name: mine, expression: "true"}]
  annotations: {admissions.enforcer/disabled: "true"}
  labels: {team: ml}
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /ca}]
extraInitContainers: [{name: before, image: a}]
extraContainers: [{name: beside, image: a}]
extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}]
podSecurityContext: {runAsNonRoot: true}
containerSecurityContext: {privileged: false}
dnsConfig: {nameservers: [192.0.2.1]}
hostAliases: [{ip: 192.0.2.2, hostnames: [proxy]}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
strategy: {type: Recreate}
probes: {readiness: {periodSeconds: 2}}
revisionHistoryLimit: 3
podLabels: {pod: l}
podAnnotations: {pod: a}
deploymentLabels: {deployment: l}
deploymentAnnotations: {deployment: a}
commonLabels: {cost: platform}
commonAnnotations: {owner: platform}
serviceAccount: {annotations: {role: reader}, labels: {account: l}}
service: {annotations: {a: b}, labels: {service: l}, ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4]}
hostNetwork: true
ports: {https: 9443, probes: 9081}
replicas: 3
warnOfMutations: true
podDisruptionBudget: {maxUnavailable: 50%}
monitoring:
  serviceMonitor: true
  interval: 10s
  relabelings: [{action: labelmap}]
  labels: {prometheus: main}
  annotations: {monitor: a}
"""
POD, ACCOUNT = "Deployment claimgate spec template spec", "ServiceAccount claimgate metadata"
ASKED, CHANGED = "ValidatingWebhookConfiguration claimgate", "MutatingWebhookConfiguration claimgate"
MONITOR = "ServiceMonitor claimgate"
SAID = {
    "labels of webhook configurations": (f"{ASKED} metadata labels team", "ml"),
    "annotations of webhook configurations": (f"{CHANGED} metadata annotations admissions.enforcer/disabled", "true"),
    "the objects for which the webhook is called": (
        f"{ASKED} webhooks 0 objectSelector",
        {"matchLabels": {"team": "ml"}},
    ),
    "an additional condition": (f"{ASKED} webhooks 1 matchConditions -1 name", "mine"),
    "a variable": (f"{POD} containers 0 env -1", {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}),
    "a volume": (f"{POD} volumes -1", {"name": "ca", "configMap": {"name": "ca"}}),
    "a mount": (f"{POD} containers 0 volumeMounts -1", {"name": "ca", "mountPath": "/ca"}),
    "an additional init container": (f"{POD} initContainers 0 name", "before"),
    "an additional container": (f"{POD} containers 1 name", "beside"),
    "an additional object": ("ConfigMap mine metadata name", "mine"),
    "security of Pods": (f"{POD} securityContext", {"runAsNonRoot": True}),
    "security of containers": (f"{POD} containers 0 securityContext", {"privileged": False}),
    "name servers": (f"{POD} dnsConfig nameservers", ["192.0.2.1"]),
    "aliases of hosts": (f"{POD} hostAliases 0 ip", "192.0.2.2"),
    "spread over racks": (f"{POD} topologySpreadConstraints 0 topologyKey", "rack"),
    "the strategy of the Deployment": ("Deployment claimgate spec strategy", {"type": "Recreate"}),
    "a field of a probe": (f"{POD} containers 0 readinessProbe periodSeconds", 2),
    "the other fields of that probe": (f"{POD} containers 0 readinessProbe httpGet path", "/readyz"),
    "old ReplicaSets": ("Deployment claimgate spec revisionHistoryLimit", 3),
    "old ReplicaSets of the other Deployment": ("Deployment claimgate-certificates spec revisionHistoryLimit", 3),
    "labels of Pods": ("Deployment claimgate spec template metadata labels pod", "l"),
    "annotations of Pods": ("Deployment claimgate spec template metadata annotations pod", "a"),
    "labels of the Deployment": ("Deployment claimgate metadata labels deployment", "l"),
    "annotations of the Deployment": ("Deployment claimgate metadata annotations deployment", "a"),
    "labels of everything": (f"{ACCOUNT} labels cost", "platform"),
    "annotations of everything": (f"{ACCOUNT} annotations owner", "platform"),
    "annotations of a ServiceAccount": (f"{ACCOUNT} annotations role", "reader"),
    "labels of a ServiceAccount": (f"{ACCOUNT} labels account", "l"),
    "annotations of the Service": ("Service claimgate metadata annotations a", "b"),
    "labels of the Service": ("Service claimgate metadata labels service", "l"),
    "families of addresses": ("Service claimgate spec ipFamilies", ["IPv6", "IPv4"]),
    "two address families, if the cluster has two": ("Service claimgate spec ipFamilyPolicy", "PreferDualStack"),
    "the network of the node": (f"{POD} hostNetwork", True),
    "the DNS policy with the network of the node": (f"{POD} dnsPolicy", "ClusterFirstWithHostNet"),
    "the port of reviews": (f"{POD} containers 0 ports 0 containerPort", 9443),
    "the port of probes": (f"{POD} containers 0 ports 1 containerPort", 9081),
    "a budget": ("PodDisruptionBudget claimgate spec maxUnavailable", "50%"),
    "metrics are found by a Service": (f"{MONITOR} spec endpoints 0 interval", "10s"),
    "relabelings of metrics": (f"{MONITOR} spec endpoints 0 relabelings", [{"action": "labelmap"}]),
    "labels of the monitor": (f"{MONITOR} metadata labels prometheus", "main"),
    "annotations of the monitor": (f"{MONITOR} metadata annotations monitor", "a"),
    "the Service of metrics": ("Service claimgate-metrics spec ports 0 port", 9081),
}
"""Each place in the output of the chart for SITE, with its value"""


def test_every_value_of_the_chart_reaches_its_field(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(SITE)
    place = ("--namespace", NAMESPACE, "--kube-version", "1.36.2", "--values", str(tmp_path / "values.yaml"))
    found = [one for one in quick_yaml.load_all(helm("template", "claimgate", str(CHART), *place).stdout) if one]
    made: Any = {(one["kind"], one["metadata"]["name"]): one for one in found}
    for said, (path, expected) in SAID.items():
        kind, name, *steps = path.split()
        value = made[kind, name]
        for step in steps:
            value = value[int(step)] if isinstance(value, list) else value.get(step)
        assert value == expected, said
    container = made["Deployment", "claimgate"]["spec"]["template"]["spec"]["containers"][0]
    assert {"--port=9443", "--probe-port=9081", "--warn-of-mutations"} <= set(container["args"])
    assert "--probe-port=8081" not in container["args"]
    assert "minAvailable" not in made["PodDisruptionBudget", "claimgate"]["spec"]
    selector = made["ServiceMonitor", "claimgate"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= made["Service", "claimgate-metrics"]["metadata"]["labels"].items()


LEFT_OUT = {
    "one replica could never be evicted": ("replicas=1", {"PodDisruptionBudget"}),
    "ServiceAccounts that already exist": ("serviceAccount.create=false", {"ServiceAccount"}),
    "rights that already exist": ("rbac.create=false", {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
}


@pytest.mark.parametrize(("value", "kinds"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_a_value_excludes_only_its_own_kinds(value: str, kinds: set[str]) -> None:
    usual = {one["kind"] for one in rendered(*EVERYTHING[:3])}
    assert kinds <= usual
    assert {one["kind"] for one in rendered(*EVERYTHING[:3], value)} == usual - kinds


EXEMPT = """
- {users: [alice, 'a "b" <c>'], groups: [one, two], owner: us, reason: r, expires: "2999-01-31"}
- {users: [old], owner: us, reason: r, expires: "2020-01-31"}
- {groups: [three], owner: us, reason: r, expires: "2999-02-28"}
"""


def test_exempt_users_are_in_every_webhook_as_webhook_config_writes_them(tmp_path: Path) -> None:
    (tmp_path / "claimgate.yaml").write_text(f"exemptions: {EXEMPT}")
    values = {"livePolicies": True, "config": {"exemptions": quick_yaml.load(EXEMPT)}}
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    place = ("--kube-version", "1.36.2", "--skip-tests")
    text = helm("template", "claimgate", str(CHART), "-f", str(tmp_path / "values.yaml"), *place).stdout
    made = by_name([found for found in quick_yaml.load_all(text) if found])
    exempt = exemption_conditions(
        read_configuration(tmp_path / "claimgate.yaml").value.exemptions, datetime.now(UTC).date()
    )
    assert len(exempt) == 2
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for webhook in made[kind, "claimgate"]["webhooks"]:
            last = [(each["name"], each["expression"]) for each in webhook["matchConditions"][-2:]]
            assert tuple(last) == exempt, webhook["name"]
    for name in ("claimgate", "claimgate-registration"):  # the registration writes the conditions
        pod = made["Deployment", name]["spec"]["template"]["spec"]
        assert {"name": "config", "configMap": {"name": "claimgate-config"}} in pod["volumes"], name


def test_policies_of_the_site_are_mounted_into_the_server_and_the_registration() -> None:
    made = by_name(rendered("livePolicies=true", "policies.team\\.yaml=x", namespace="gates"))
    assert made["ConfigMap", "claimgate-policies"]["data"] == {"team.yaml": "x"}
    for name in ("claimgate", "claimgate-registration"):
        pod = made["Deployment", name]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert {"--policies=/etc/claimgate/policies", "--own-namespace=gates"} <= set(container["args"]), name
        assert container["volumeMounts"][-1]["mountPath"] == "/etc/claimgate/policies"
        assert pod["volumes"][-1]["configMap"] == {"name": "claimgate-policies"}


def hooks(*values: str) -> list[dict[str, Any]]:
    given = [word for value in values for word in ("--set", value)]
    place = ("--namespace", "gates", "--kube-version", "1.36.2")
    found = quick_yaml.load_all(helm("template", "claimgate", str(CHART), *place, *given).stdout)
    return [one for one in found if one and "helm.sh/hook" in (one["metadata"].get("annotations") or {})]


def test_helm_test_calls_the_service_without_any_rights() -> None:
    (pod,) = hooks()
    spec = pod["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert not {"serviceAccountName", "priorityClassName"} & set(spec)
    assert spec["containers"][0]["args"][0] == "https://claimgate.gates.svc/readyz?verbose"
    assert spec["volumes"][0]["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    bundle, _ = hooks("certificates.issuer=none", "certificates.caBundle=YQ==")
    assert bundle["data"] == {"ca.crt": "a"}
    for value in (
        "test.enabled=false",
        "clientCertificates.enabled=true",
        "networkPolicy.controlPlane[0]=192.0.2.0/24",
    ):
        assert hooks(value) == [], value


def test_the_command_of_helm_test_trusts_only_the_stored_authority(tmp_path: Path) -> None:
    """As in the cluster, the server has a separate port for probes."""
    (container,) = hooks()[0]["spec"]["containers"]
    command = [sys.executable, *container["command"][1:]]
    (tmp_path / "served").mkdir()
    (tmp_path / "one.yaml").write_text(policy("pods"))
    issue(Folder(tmp_path / "other"), ["localhost"], now=datetime.now(UTC), days=Days())
    with served(tmp_path / "served", "--only", str(tmp_path / "one.yaml"), "--probe-port", "0") as server:
        port = server.wait("ready")["port"]
        for folder, code in ((tmp_path / "served", 0), (tmp_path / "other", 1)):
            asked = [*command, container["args"][0].replace("claimgate.gates.svc", f"localhost:{port}")]
            done = subprocess.run([*asked, str(folder / "ca.crt")], capture_output=True, text=True, check=False)
            assert done.returncode == code, done.stderr
            assert ("readyz check passed" in done.stdout) is (code == 0)
            assert ("certificate verify failed" in done.stderr) is (code == 1)


def test_every_value_is_documented_and_has_a_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = quick_yaml.load((CHART / "values.yaml").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)
    for name, value in values.items():
        if value and isinstance(value, dict) and (properties := schema["properties"][name].get("properties")):
            assert set(properties) == set(value), name


def test_the_chart_is_this_version() -> None:
    chart = quick_yaml.load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_no_upgrade_meets_a_field_that_cannot_be_changed() -> None:
    """The image of a Job and the data of an immutable ConfigMap cannot change, so neither may be installed."""
    values = ["livePolicies=true", "authorizer=true", "clusterAudit.enabled=true", "autoscaling.enabled=true"]
    found = rendered(*values)
    assert "Job" not in {one["kind"] for one in found}
    assert not [one["metadata"]["name"] for one in found if one.get("immutable")]


@pytest.mark.parametrize(("address", "port"), [("http://collector.o11y:4317", 4317), ("https://collector.o11y", 4318)])
def test_traces_go_to_a_collector_that_the_network_policy_allows(address: str, port: int) -> None:
    found = {(one["kind"], one["metadata"]["name"]): one for one in rendered(f"traces={address}")}
    (container,) = found["Deployment", "claimgate"]["spec"]["template"]["spec"]["containers"]
    assert "--traces" in container["args"]
    assert {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": address} in container["env"]
    (_, added) = found["NetworkPolicy", "claimgate"]["spec"]["egress"]
    assert [one["port"] for one in added["ports"]] == [port, 53, 53]
    assert len(found["NetworkPolicy", "claimgate-certificates"]["spec"]["egress"]) == 1
