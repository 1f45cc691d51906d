"""The fact `training`: what an object of Kubeflow Trainer says by itself."""

import pytest

from webhook.facts.training_jobs.training import training


@pytest.mark.parametrize(("release", "expected"), [((2, 3), ("2.3", 3)), ((3, 0), ("3.0", 99)), ((1, 9), ("1.9", 0))])
def test_releases_can_be_compared(release: tuple, expected: tuple) -> None:
    found = training(None, release)
    assert (found["release"], found["minor"]) == expected
