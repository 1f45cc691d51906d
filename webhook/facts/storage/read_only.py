"""Volumes that pods cannot write to: claims that are ReadOnlyMany, and checkpoints on a read-only volume.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes
"""

from __future__ import annotations

from typing import Final

from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import VolumeMountInObject
from webhook.problem import Problem

READ_ONLY: Final = STORAGE.rule(
    "storage/read-only",
    title="A volume for checkpoints can be written.",
    why="The first checkpoint fails on a read-only volume.",
    fails="start",
)
READ_ONLY_CLAIM: Final = STORAGE.rule(
    "storage/read-only-claim",
    title="A ReadOnlyMany claim is mounted read-only.",
    why=(
        "Some drivers mount such a volume not at all unless the volume says readOnly, and others read-only, which is "
        "enough for who only reads."
    ),
    level="advice",
    fails="start",
)


def read_only_problem(mount: VolumeMountInObject, claim: str = "") -> Problem:
    """Return the problem of pods that write where they cannot: to a claim, or checkpoints to a read-only volume."""
    if claim:
        message = f"mounts {claim} for writing, but the claim is ReadOnlyMany, so the mount or the writes may fail"
        return READ_ONLY_CLAIM.problem(mount.path, message, "set readOnly: true on the volume and its mounts")
    message = f"checkpoints cannot be written to `{mount.target}` because the volume is read-only"
    return READ_ONLY.problem(mount.path, message, "remove readOnly from the volume and its mount")
