"""Every sample of the playground gets the verdict of `claimgate replay` for the same texts."""

import json

import pytest

from tests.playground.asking import evaluated
from webhook.cli import run_command_line
from webhook.manifests.models import MODELS
from webhook.playground.application import read_samples
from webhook.yamltext import yamlfile

NAMES = list(read_samples())


def replayed(sample, folder, capsys):
    """Return the answer of `claimgate replay` to the texts of a sample, which are written to files."""
    (folder / "object.yaml").write_text(sample["object"])
    arguments = ["replay", str(folder / "object.yaml"), "-o", "json"]
    parts = {"policies": [], "context": []}
    for document in yamlfile.load(sample.get("cluster", "")):
        parts["policies" if document.value["kind"] in MODELS else "context"].append(document.value)
    for name, objects in parts.items():
        if objects:
            (folder / f"{name}.yaml").write_text("---\n".join(map(yamlfile.dump, objects)))
            arguments += [f"--{name}", str(folder / f"{name}.yaml")]
    assert run_command_line([*arguments, *(["--context-is-whole"] if sample.get("isWhole") else [])]) in (0, 1, 3)
    named = capsys.readouterr().out.replace(str(folder / "context.yaml"), "cluster")
    return json.loads(named.replace(str(folder / "object.yaml"), "object"))


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_gets_the_verdict_of_the_command_line(name, tmp_path, capsys):
    sample = read_samples()[name]
    answer = evaluated(dict(sample)).json()
    expected = replayed(sample, tmp_path, capsys)
    for review, replay in zip(answer["reviews"], expected, strict=True):
        assert review["allowed"] is replay["allowed"]
        assert review["warnings"] == replay["warnings"]
        assert [json.loads(each) for each in review["patch"]] == replay["patch"]
        if not replay["allowed"]:
            assert (review["status"]["code"], review["status"]["message"]) == (replay["code"], replay["message"])
            assert review["kubectl"][-1].endswith(f" denied the request: {replay['message']}")


def test_samples_show_a_denial_a_warning_a_change_queues_and_own_policies():
    answers = [evaluated(dict(read_samples()[name])).json() for name in NAMES]
    reviews = [review for answer in answers for review in answer["reviews"]]
    assert {review["allowed"] for review in reviews} == {True, False}
    assert any(review["warnings"] for review in reviews)
    assert any(review["before"] != review["after"] for review in reviews)
    assert any(answer["queues"] for answer in answers)
    assert any(answer["ownPolicies"] for answer in answers)
    assert all(sample["title"] and sample["about"] for sample in read_samples().values())
