"""Every verb that reads a cluster has the option --kube-context for the context of the kubeconfig. `--context` names
files.
"""

import json

import pytest

from tests.page_blocks import ROOT
from tests.test_page_blocks import flags_of_verbs
from webhook.cli import run_command_line
from webhook.cluster.connection import connect_to_cluster

JOB = str(ROOT / "examples" / "research-team" / "good" / "pytorchjob.yaml")


@pytest.fixture
def kubeconfig(tmp_path):
    file = tmp_path / "config"
    names = ("here", "there")
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": name, "cluster": {"server": f"http://{name}.example"}} for name in names],
                "users": [{"name": "user", "user": {"token": "secret"}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": "user"}} for name in names],
                "current-context": "here",
            }
        )
    )
    return file


def test_a_context_chooses_the_cluster(kubeconfig):
    assert connect_to_cluster(kubeconfig).configuration.host == "http://here.example"
    assert connect_to_cluster(kubeconfig, "there").configuration.host == "http://there.example"


@pytest.mark.parametrize(
    "verb",
    [["audit"], ["queues"], ["simulate", JOB], ["why", "job/train"], ["webhook-config"], ["webhook-config", "--check"]],
    ids=" ".join,
)
def test_a_context_that_does_not_exist_is_named(verb, kubeconfig, capsys):
    assert run_command_line([*verb, "--kubeconfig", str(kubeconfig), "--kube-context", "nowhere"]) == 2
    message = f"kubeconfig {kubeconfig} has no context `nowhere`; `kubectl config get-contexts` lists its contexts"
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {message}"


def test_certs_uses_the_given_kube_context(kubeconfig, capsys):
    arguments = ["certs", "show", "--secret", "a/b", "--kubeconfig", str(kubeconfig), "--kube-context", "nowhere"]
    assert run_command_line(arguments) == 2
    assert "nowhere" in capsys.readouterr().err


def test_every_verb_with_a_kubeconfig_accepts_a_context_of_the_kubeconfig():
    flags = [(verb, flags) for verb, flags in flags_of_verbs() if "--kubeconfig" in flags]
    assert [verb for verb, known in flags if "--kube-context" not in known] == []
    assert {"serve", "audit"} <= {verb for verb, _ in flags}
