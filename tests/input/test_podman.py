"""Manifests that podman runs are not audited as objects of a cluster."""

import pytest

from webhook.cli import run_command_line

POD = """apiVersion: v1
kind: Pod
metadata: {name: media}
spec: {containers: [{name: a, image: x, env: [{name: PUID, value: 0}]}]}
"""


def audit(capsys, *arguments):
    code = run_command_line(["audit", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    ("script", "text", "is_for_podman"),
    [
        ("start.sh", "podman play kube pod.yaml\n", True),
        ("start.sh", 'podman pod exists p || podman kube play --replace "$BASE/pod.yaml"\n', True),
        ("media.kube", "[Kube]\nYaml=pod.yaml\n", True),
        ("media.kube", "[Kube]\nYaml=other.yaml\n", False),
        ("start.sh", "# podman play kube pod.yaml\nkubectl apply -f pod.yaml\n", False),
        ("notes.txt", "podman play kube pod.yaml\n", False),
    ],
)
def test_a_script_or_a_quadlet_says_that_podman_runs_a_pod(script, text, is_for_podman, tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / script).write_text(text)
    code, told = audit(capsys, tmp_path, "--fail-on=deny,undecided")
    assert code == (0 if is_for_podman else 1)
    assert (f"podman runs it, as `{script}` says" in told.err) == is_for_podman
    assert audit(capsys, tmp_path / "pod.yaml")[0] == 1, "who names the file wants to know"


def test_scripts_outside_the_named_folder_are_not_read(tmp_path, capsys):
    (tmp_path / "outside").write_text("podman play kube pod.yaml\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/pod.yaml").write_text(POD)
    (tmp_path / "tree/start.sh").symlink_to("../outside")
    assert audit(capsys, tmp_path / "tree")[0] == 1
