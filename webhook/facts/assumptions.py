"""What facts assume of the cluster where its objects do not say it: versions, as settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """kubernetes: minor release of the API server. trainer: release of Kubeflow Trainer; its four shapes differ."""

    kubernetes: tuple[int, int] = (1, 36)
    trainer: tuple[int, int] = (2, 3)
