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


def linked_pages(page):
    """The pages that a page links to."""
    folder = (ROOT / page).parent
    targets = ((folder / target).resolve() for target in LINK.findall((ROOT / page).read_text()))
    return {target.relative_to(ROOT).as_posix() for target in targets if target.suffix == ".md" and target.is_file()}


@pytest.mark.parametrize("front", ["README.md", "docs/index.md"])
def test_every_question_has_a_page_within_two_clicks(front):
    first = linked_pages(front)
    reached = first.union(*(linked_pages(page) for page in first))
    assert {how: page for how, page in PAGE_OF_QUESTION.items() if page not in reached} == {}
    assert len(PAGE_OF_QUESTION) == 26
