"""A check that fails."""

from webhook.facts.subject import Check
from webhook.rules.rule import RuleGroup


def fail(subject):
    """Raise an error in every review."""
    raise KeyError(subject.object["metadata"]["labels"]["secret"])
    yield


GROUP = RuleGroup("broken", source="nobody")
RULE = GROUP.rule("broken/rule", title="A rule is asked about.", why="It is never found.")
CHECKS = (Check(group="broken", run=fail),)
