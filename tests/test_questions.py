"""Each question of a user has its page, within two clicks from the front page."""

import re

import pytest

from tests.page_blocks import ROOT

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PAGE_OF_QUESTION = {
    "write my first policy": "docs/tutorial.md",
    "see what each verb does": "docs/tour.md",
    "try a policy in the browser": "docs/playground.md",
    "check manifests in CI": "docs/integrations.md",
    "check files that I do not trust": "docs/untrusted-files.md",
    "read the report in another program": "docs/formats.md",
    "use claimgate beside kube-linter, kubeconform or trivy": "docs/linters.md",
    "find out whether a job can ever start": "docs/simulate.md",
    "find out why my job does not start": "docs/why.md",
    "mend a job that was refused": "docs/denials.md",
    "report a wrong finding": "docs/false-positives.md",
    "check a vLLM server": "docs/servers/vllm.md",
    "check a Ray Serve application": "docs/servers/ray-serve.md",
    "check a KServe InferenceService": "docs/servers/kinds.md",
    "check workloads for AMD, TPU or Gaudi": "docs/accelerators.md",
    "check shared GPUs and MIG": "docs/shared-gpus.md",
    "install the webhook": "deploy/README.md",
    "install it on OpenShift": "docs/clusters.md",
    "roll out, upgrade and go back": "docs/rollout.md",
    "know whether my cluster is supported": "docs/supported.md",
    "keep Argo CD from seeing drift": "docs/gitops.md",
    "size the server": "docs/sizing.md",
    "audit a whole cluster": "docs/cluster-audit.md",
    "find out why something does not work": "docs/troubleshooting.md",
    "make an exception from a rule": "docs/configuration.md",
    "move from Kyverno or Gatekeeper": "docs/move.md",
}


ANSWERS = {
    "install it with Helm": ("deploy/README.md", "helm install claimgate"),
    "try it in a cluster on my machine": ("docs/clusters.md", "kind load docker-image"),
    "see what it would refuse before it refuses": ("docs/rollout.md", "claimgate rollout"),
    "turn off one rule": ("docs/configuration.md", "levels:"),
    "exclude a namespace": ("docs/registration.md", "webhooks.excludedNamespaces"),
    "exempt a GitOps controller": ("docs/configuration.md", "## Exemptions"),
    "know what happens while it is down": ("docs/rollout.md", "if claimgate does not answer"),
    "upgrade and go back": ("deploy/README.md", "helm rollback"),
    "uninstall it": ("deploy/README.md", "kubectl delete -k deploy/base"),
    "be alerted": ("docs/monitoring.md", "ClaimgateOneReplica"),
    "replace the certificate": ("docs/certificates.md", "delete secret claimgate-certificates"),
    "limit the GPUs of a pod": ("docs/policies.md", "gpu-maximum"),
    "limit the GPUs of a whole job": ("docs/tutorial.md", "gpu.podSets.all("),
    "know what the next version denies": ("docs/rollout.md", "--only OLD/policies --against NEW/policies"),
    "test my policies": ("docs/policies.md", "claimgate test"),
    "check charts in CI": ("docs/integrations.md", "--render"),
    "get findings into code scanning": ("docs/integrations.md", "upload-sarif"),
    "accept the findings that I have, and stop new ones": ("docs/integrations.md", "--baseline"),
    "install it without internet": ("docs/clusters.md", "## Without internet"),
    "know what a denial means": ("docs/denials.md", "Each line ends with"),
    "know why my job is pending": ("docs/why.md", "waits: Kueue has no free quota"),
    "know before I submit whether a job can start": ("docs/simulate.md", "--live"),
    "know how many GPUs my queue can give": ("docs/tour.md", "can admit at most"),
    "check the arguments of a vLLM server": ("docs/servers/vllm.md", "tensor-parallel"),
    "ask for an exception in my namespace": ("docs/policy-exceptions.md", "kind: PolicyException"),
    "see findings in my editor": ("docs/integrations.md", "## Editors"),
    "check a job from a notebook": ("docs/python.md", "import claimgate"),
    "audit only what a change touched": ("docs/integrations.md", "--changed-since"),
    "get a comment on a pull request": ("docs/integrations.md", "gh pr comment"),
    "use AMD GPUs where a manifest says gpu": ("policies/README.md", "resource.team-a: amd.com/gpu"),
    "say which release of Kueue runs": ("docs/supported.md", "releases.kueue"),
    "get rid of the webhook in an emergency": ("deploy/README.md", "**Are you locked out?**"),
    "turn a request into a test": ("docs/commands.md", "--record DIR"),
    "check a kind that claimgate does not know": ("docs/policies.md", "--workloads FILE"),
    "use a policy without the webhook": ("docs/tutorial.md", "policies export"),
}
"""Questions of platform engineers and data scientists, with the page and words of the answer"""


def linked_pages(page):
    folder = (ROOT / page).parent
    targets = ((folder / target).resolve() for target in LINK.findall((ROOT / page).read_text()))
    return {target.relative_to(ROOT).as_posix() for target in targets if target.suffix == ".md" and target.is_file()}


@pytest.mark.parametrize("front", ["README.md", "docs/index.md"])
def test_every_question_has_a_page_within_two_clicks(front):
    first = linked_pages(front)
    reached = first.union(*(linked_pages(page) for page in first))
    assert {how: page for how, page in PAGE_OF_QUESTION.items() if page not in reached} == {}
    assert len(PAGE_OF_QUESTION) == 26


@pytest.mark.parametrize("front", ["README.md", "docs/index.md"])
def test_every_answer_is_within_two_clicks(front):
    first = linked_pages(front)
    reached = first.union(*(linked_pages(page) for page in first))
    assert {how: page for how, (page, _) in ANSWERS.items() if page not in reached} == {}


@pytest.mark.parametrize(("page", "words"), ANSWERS.values(), ids=ANSWERS)
def test_the_page_has_the_answer(page, words):
    assert words in (ROOT / page).read_text()
