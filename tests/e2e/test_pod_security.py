"""The checks of Pod Security refuse the same Pods as a real API server does, for each level and several releases."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Final

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import trust
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON
from webhook.facts.pod_security import Enforced, breaches_of_pods
from webhook.typed.pods import Pod

pytestmark = pytest.mark.e2e
PODS: Final = 2000
PLUGINS: Final = "ServiceAccount,DefaultTolerationSeconds,Priority,RuntimeClass,LimitRanger,DefaultStorageClass"
RELEASES: Final = {
    "latest": 36,
    "v1.36": 36,
    "v1.34": 34,
    "v1.31": 31,
    "v1.28": 28,
    "v1.26": 26,
    "v1.23": 23,
    "v1.20": 20,
}
PROFILE: Final = {"type": "RuntimeDefault"}
KEPT: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": PROFILE,
}
"""What `restricted` demands of a container"""
OF_CONTAINER: Final = (
    ("securityContext", "privileged", True),
    ("securityContext", "privileged", False),
    ("securityContext", "allowPrivilegeEscalation", True),
    ("securityContext", "allowPrivilegeEscalation", None),
    ("securityContext", "runAsNonRoot", False),
    ("securityContext", "runAsNonRoot", None),
    ("securityContext", "runAsUser", 0),
    ("securityContext", "runAsUser", 1000),
    ("securityContext", "seccompProfile", None),
    ("securityContext", "seccompProfile", {"type": "Unconfined"}),
    ("securityContext", "seccompProfile", {"type": "Localhost", "localhostProfile": "a.json"}),
    ("securityContext", "capabilities", None),
    ("securityContext", "capabilities", {"drop": ["NET_RAW"]}),
    ("securityContext", "capabilities", {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    ("securityContext", "capabilities", {"drop": ["ALL"], "add": ["CHOWN"]}),
    ("securityContext", "capabilities", {"drop": ["ALL"], "add": ["SYS_PTRACE", "IPC_LOCK"]}),
    ("securityContext", "procMount", "Unmasked"),
    ("securityContext", "procMount", "Default"),
    ("securityContext", "seLinuxOptions", {"type": "container_t"}),
    ("securityContext", "seLinuxOptions", {"type": "container_engine_t"}),
    ("securityContext", "seLinuxOptions", {"type": "spc_t", "level": "s0"}),
    ("securityContext", "seLinuxOptions", {"user": "u"}),
    ("securityContext", "appArmorProfile", {"type": "Unconfined"}),
    ("securityContext", "appArmorProfile", PROFILE),
    ("securityContext", "windowsOptions", {"hostProcess": True}),
    ("ports", "", [{"containerPort": 80}]),
    ("ports", "", [{"containerPort": 80, "hostPort": 80}]),
    ("livenessProbe", "", {"httpGet": {"port": 80, "host": "192.0.2.1"}}),
    ("readinessProbe", "", {"tcpSocket": {"port": 80, "host": ""}}),
    ("readinessProbe", "", {"tcpSocket": {"port": 80, "host": "a.example"}}),
    ("lifecycle", "", {"preStop": {"httpGet": {"port": 80, "host": "192.0.2.1"}}}),
)
OF_POD: Final = (
    ("hostNetwork", True),
    ("hostPID", True),
    ("hostIPC", True),
    ("hostUsers", False),
    ("hostUsers", True),
    ("os", {"name": "windows"}),
    ("os", {"name": "linux"}),
    ("securityContext", {"runAsNonRoot": True, "seccompProfile": PROFILE}),
    ("securityContext", {"runAsNonRoot": False}),
    ("securityContext", {"runAsUser": 0}),
    ("securityContext", {"seccompProfile": {"type": "Unconfined"}}),
    ("securityContext", {"seLinuxOptions": {"role": "r"}}),
    ("securityContext", {"appArmorProfile": {"type": "Unconfined"}}),
    ("securityContext", {"windowsOptions": {"hostProcess": True}}),
    ("securityContext", {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}),
    ("securityContext", {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}),
    ("securityContext", {"sysctls": [{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]}),
    ("securityContext", {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    ("volumes", [{"name": "v", "emptyDir": {}}, {"name": "w"}]),
    ("volumes", [{"name": "v", "hostPath": {"path": "/dev"}}]),
    ("volumes", [{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
    ("volumes", [{"name": "v", "csi": {"driver": "d"}}, {"name": "w", "configMap": {"name": "c"}}]),
    ("volumes", [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]),
)
ANNOTATIONS: Final = (
    {},
    {},
    {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"},
    {"container.apparmor.security.beta.kubernetes.io/main": "localhost/a"},
    {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
)


def random_pod(random: Random) -> JSON:
    """Return a random Pod that meets `restricted`, except for up to three fields or a missing security context."""
    names = ("containers", *(("initContainers",) if random.random() < 0.3 else ()))
    spec: JSON = {
        name: [{"name": f"{name[0]}{index}", "image": "i"} for index in range(random.randint(1, 2))] for name in names
    }
    spec["containers"][0]["name"] = "main"
    is_kept = random.random() < 0.8
    listed = [each for name in names for each in spec[name]]
    for each in listed:
        each["securityContext"] = deepcopy(KEPT) if is_kept else {}
    for _ in range(random.randint(0, 3)):
        if random.random() < 0.4:
            field, value = random.choice(OF_POD)
            spec[field] = deepcopy(value)
            continue
        part, field, value = random.choice(OF_CONTAINER)
        container = random.choice(
            spec["containers"] if part in ("lifecycle", "livenessProbe", "readinessProbe") else listed
        )
        if field:
            container[part][field] = deepcopy(value)
        else:
            container[part] = deepcopy(value)
    metadata = {"name": "x", "annotations": random.choice(ANNOTATIONS)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_pods_are_refused_as_the_plugin_refuses_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("pod-security")
    said: Counter[tuple[str, bool]] = Counter()
    with apiserver.running(folder, f"--disable-admission-plugins={PLUGINS}") as server:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60) as client:
            namespaces = [(level, release) for level in ("baseline", "restricted") for release in RELEASES]
            for level, release in namespaces:
                client.post("/api/v1/namespaces", json=namespace(level, release)).raise_for_status()
            seed = 0
            while said.total() < PODS:
                seed += 1
                random = Random(seed)
                level, release = random.choice(namespaces)
                pod = random_pod(random)
                path = f"/api/v1/namespaces/{name_of(level, release)}/pods"
                answer = client.post(path, params={"dryRun": "All"}, json=pod)
                is_refused = answer.status_code == 403 and "violates PodSecurity" in answer.text
                if answer.status_code != 201 and not is_refused:
                    continue  # the API server refuses such a Pod as invalid
                decoded = Pod.of(attributes_of_object(pod).object)
                breaches = breaches_of_pods(decoded, Enforced(level, (RELEASES[release],)))
                assert bool(breaches) == is_refused, (seed, level, release, breaches, answer.text, pod)
                said[level, is_refused] += 1
    assert min(said.values()) > PODS / 20, said


def name_of(level: str, release: str) -> str:
    return f"{level}-{release.replace('.', '-')}"


def namespace(level: str, release: str) -> JSON:
    labels = {"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": release}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name_of(level, release), "labels": labels}}
