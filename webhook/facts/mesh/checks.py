"""The checks of sidecars that outlive a job."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.mesh.sidecars import advise_sidecar
from webhook.facts.train_job_pods.lookups import RUNTIMES

CHECKS: Final = (Check(group="mesh", run=advise_sidecar, lookups=RUNTIMES, of_made_objects=False),)
