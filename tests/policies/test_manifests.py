"""Everything the shipped policies say of the published manifests, reviewed one by one: tests/data/golden/manifests.

A folder is audited with its own objects as the view of the cluster. After a change, `UPDATE_GOLDEN=1 pytest
tests/policies/test_manifests.py` rewrites the files; the difference is reviewed like code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from webhook import shipped
from webhook.admission import fixtures
from webhook.cluster.files import FilesCluster
from webhook.commands.assumed import AssumedNamespaces
from webhook.commands.phases import Local, run
from webhook.decisions import ValidationAction
from webhook.policy.load import Options, load
from webhook.workloads.table import load as load_table

DATA = Path(__file__).parents[1] / "data"
HOW = Options(table=load_table())
POLICIES = load([Path(shipped.policies())], HOW)

INVALID = {
    # file -> why it is not valid (the reference's section 7 and the index's notes); denials are expected here alone
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-claims.yaml": "resource.k8s.io/v1alpha2",
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-job-1.yaml": "`source:` of v1alpha2",
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-job.yaml": "`source:` of v1alpha2",
    "dra/nvidia-dra-driver/selectors__claims.yaml": "resource.k8s.io/v1alpha2",
    "dra/nvidia-dra-driver/selectors__pods.yaml": "`source:` of v1alpha2",
    "kubeflow/kep2782/june-06f52b006-1.yaml": "replicated job `Node` is no DNS label",
    "kubeflow/kep2782/june-06f52b006-2.yaml": "on that runtime, which has no trainer step either",
    "kubeflow/kep2782/june-06f52b006-3.yaml": "manager `user` without a domain, on that runtime",
    "kubeflow/trainer-05-multi-step.yaml": "initializer without its volumeMount, refused since Trainer 2.3",
}


def documents(folder: str) -> Iterator[tuple[str, dict]]:
    for file in sorted((DATA / "manifests" / folder).rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if isinstance(document, dict) and document.get("apiVersion") and document.get("kind"):
                yield str(file.relative_to(DATA / "manifests")), document


def findings(folder: str) -> Iterator[tuple[str, str, str]]:
    """File, what happened (deny, warn), and the text, of everything that is not simply admitted."""
    known = list(documents(folder))
    view = AssumedNamespaces(FilesCluster(document for _, document in known))
    for file, document in known:
        outcome = run(
            fixtures.attributes_of_object(document, HOW.table.row), "auto", Local(policies=POLICIES, cluster=view)
        )
        for _, made in outcome.decisions:
            if made.evaluation in ("deny", "error"):
                action = "deny" if ValidationAction.DENY in made.actions else "warn"
                yield (
                    file,
                    action,
                    f"{document['kind']}: {made.message} ({made.policy}{', error' if made.evaluation == 'error' else ''})",
                )


@pytest.mark.parametrize("folder", ["kubeflow", "dra", "kueue", "volcano"])
def test_nothing_valid_is_denied_and_every_word_is_reviewed(folder: str) -> None:
    found = list(findings(folder))
    wrongly = [each for each in found if each[1] == "deny" and each[0] not in INVALID]
    assert wrongly == []
    golden = DATA / "golden" / "manifests" / f"{folder}.txt"
    lines = "".join(f"{file}\n    {action}: {text}\n" for file, action, text in found)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(lines)
    assert lines == golden.read_text()


def test_what_is_invalid_is_found() -> None:
    denied = {
        file
        for folder in ("kubeflow", "dra", "kueue", "volcano")
        for file, action, _ in findings(folder)
        if action == "deny"
    }
    assert denied == set(INVALID)
