"""A check that fails."""

from webhook.facts.check import Check


def fail(subject):
    """Every review ends here."""
    raise KeyError(subject.object["metadata"]["labels"]["secret"])
    yield


CHECKS = (Check(group="broken", run=fail),)
