"""`webhook-config --check --live` reads the configuration that the servers mount, in the same way as a starting Pod."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.server import ApiServer, config, page
from webhook import assembly
from webhook.cluster.connection import connect_to_cluster
from webhook.commands.enforcing import ClusterReader
from webhook.commands.installation import check_served_configurations
from webhook.settings.shared import Settings

DAY = dt.date(2026, 12, 1)
PATH = "/api/v1/namespaces/n/configmaps/claimgate-config"
EXCEPTION = 'exceptions: [{rules: [gpu-portable/all], owner: us, reason: r, expires: "2026-12-05"}]'
KEPT = "; running replicas keep the last good configuration, but a new replica does not start"


def deployment(*args: str, path: str = "/etc/c/claimgate.yaml", **volume: Any) -> dict[str, Any]:
    container = {
        "args": ["serve", *args],
        "env": [{"name": "CLAIMGATE_CONFIG", "value": path}],
        "volumeMounts": [{"name": "tls", "mountPath": "/etc/tls"}, {"name": "c", "mountPath": "/etc/c/"}],
    }
    volumes = [{"name": "tls", "secret": {}}, {"name": "c", "configMap": {"name": "claimgate-config", **volume}}]
    return {
        "metadata": {"name": "claimgate", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [container, {}], "volumes": volumes}}},
    }


def check(server: ApiServer, folder: Path, deployed: dict[str, Any], **data: str) -> tuple[list[str], list[str]]:
    server.answers["/apis/apps/v1/namespaces/n/deployments"] = page(deployed)
    server.answers[PATH] = 200, config("claimgate-config", **data)
    loaded = assembly.assemble_policies_and_context(Settings()).policies
    return check_served_configurations(ClusterReader(connect_to_cluster(server.kubeconfig(folder))), "n", loaded, DAY)


NAME = "ConfigMap n/claimgate-config claimgate.yaml"
UNKNOWN = "levels: {rules: {gpu-portable/al: warn}}"


@pytest.mark.parametrize(
    ("deployed", "text", "mistakes", "ends"),
    [
        pytest.param(deployment(), "levels: {}", [], [], id="a good configuration"),
        pytest.param(
            deployment(),
            "level: {}",
            [f"{NAME}:1:1: level: unknown field: did you mean `levels`?{KEPT}"],
            [],
            id="a misspelt field",
        ),
        pytest.param(
            deployment(),
            UNKNOWN,
            [
                (
                    f'{NAME}:1:18: levels.rules["gpu-portable/al"]: unknown rule `gpu-portable/al`: '
                    f"did you mean `gpu-portable/all`?{KEPT}"
                ),
            ],
            [],
            id="an unknown rule",
        ),
        pytest.param(deployment("--policies=/own"), UNKNOWN, [], [], id="a rule of policies that are not known here"),
        pytest.param(
            deployment(),
            EXCEPTION,
            [],
            [
                (
                    f"{NAME}:1:14: exceptions[0]: ends on 2026-12-05, in 4 days; then gpu-portable/all applies again: "
                    "mend the objects, or ask us for a later day"
                ),
            ],
            id="an exception that ends soon",
        ),
        pytest.param(deployment(path="/elsewhere/claimgate.yaml"), "level: {}", [], [], id="a file of another folder"),
        pytest.param(
            deployment(items=[{"key": "other", "path": "claimgate.yaml"}]),
            "levels: {}",
            [f"ConfigMap n/claimgate-config other: there is no such key{KEPT}"],
            [],
            id="a key that does not exist",
        ),
    ],
)
def test_the_deployed_configuration_is_checked(
    deployed: dict[str, Any], text: str, mistakes: list[str], ends: list[str], server: ApiServer, tmp_path: Path
) -> None:
    assert check(server, tmp_path, deployed, **{"claimgate.yaml": text}) == (mistakes, ends)


def test_an_unreadable_deployment_leaves_the_configuration_unknown(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/apis/apps/v1/namespaces/n/deployments"] = 403, {"message": "deployments is forbidden"}
    cluster = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    loaded = assembly.assemble_policies_and_context(Settings()).policies
    ((mistake,), ends) = check_served_configurations(cluster, "n", loaded, DAY)
    assert mistake.startswith("configuration: unknown, because it cannot be read: ")
    assert not ends


def exceptions(*specs: dict[str, Any]) -> tuple[int, Any]:
    return page(
        *(
            {
                "metadata": {"name": f"e{at}", "namespace": "research", "creationTimestamp": "2026-12-01T00:00:00Z"},
                "spec": {"rules": ["gpu-portable"], "owner": "us", "reason": "r", "expires": "2026-12-31", **spec},
            }
            for at, spec in enumerate(specs)
        )
    )


def test_policy_exceptions_without_an_effect_and_those_that_end_soon_are_noted(
    server: ApiServer, tmp_path: Path
) -> None:
    allowed = "policyExceptions: [{rules: [gpu-portable], maxDays: 30}]"
    server.answers["/apis/claimgate.dev/v1alpha1/policyexceptions"] = exceptions(
        {}, {"expires": "2026-12-03"}, {"rules": ["kueue"]}, {"owner": ""}
    )
    mistakes, ends = check(server, tmp_path, deployment(), **{"claimgate.yaml": allowed})
    later = "then gpu-portable applies again: mend the objects, or ask us for a later day"
    ask = "in namespace research: ask the operator of claimgate to allow it with `policyExceptions`, or remove it"
    assert mistakes == []
    assert ends == [
        f"PolicyException research/e1: ends on 2026-12-03, in 2 days; {later}",
        f"PolicyException research/e2 has no effect: claimgate.yaml allows no PolicyException for rule kueue {ask}",
        'PolicyException research/e3 has no effect: spec.owner: expected some text, found `""`',
    ]


def test_without_a_configuration_no_policy_exception_has_an_effect_and_twenty_are_named(
    server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/apis/claimgate.dev/v1alpha1/policyexceptions"] = exceptions(*([{}] * 30))
    server.answers["/apis/apps/v1/namespaces/n/deployments"] = page()
    loaded = assembly.assemble_policies_and_context(Settings()).policies
    reader = ClusterReader(connect_to_cluster(server.kubeconfig(tmp_path)))
    mistakes, ends = check_served_configurations(reader, "n", loaded, DAY)
    assert mistakes == []
    assert ends[0].startswith("PolicyException research/e0 has no effect: claimgate.yaml allows no PolicyException")
    assert (len(ends), ends[-1]) == (21, "PolicyException: 10 other notes")
