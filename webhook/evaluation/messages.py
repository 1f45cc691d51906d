"""The message of a denial: the messageExpression's value, shortened if too long, else `message`, else the expression.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/validator.go (Validate).
"""

from __future__ import annotations

from webhook.apimachinery import paths
from webhook.policy.compiled import Validation
from webhook.rules.declarations import Listed, problems_of_cel_value

MAX_BYTES = 5 * 1024
"""MaxEvaluatedMessageExpressionSizeBytes (pkg/apis/cel/config.go)."""

_MORE = len("; and 1000000 more")

_SPACE = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""The characters that Go's strings.TrimSpace trims (unicode.IsSpace); Python's strip takes four control characters
more.
"""


def trim_space(text: str) -> str:
    """Return the text without white space at its ends, as Go's strings.TrimSpace."""
    return text.strip(_SPACE)


def message_or_empty(evaluated: object) -> str:
    """Return the trimmed value of a messageExpression, or "" if it is blank, has several lines or is too long to
    shorten.
    """
    if not isinstance(evaluated, str):
        return ""
    text = trim_space(evaluated)
    if "\n" in text:
        return ""
    return text if len(text.encode("utf-8", "surrogatepass")) <= MAX_BYTES else _shortened_list(text)


def _shortened_list(text: str) -> str:
    """Return as many sentences of a list as fit, and how many more there are; "" for a text that is not a list.

    Upstream falls back to `message` for every text that is too long. A list whose sentences begin with field paths,
    `spec.a: no; spec.b: no`, says more than that however many mistakes an object has.
    """
    root, *_ = paths.split_off_leading_path(text[:MAX_BYTES])[0] or ("",)
    beginning = f"; {root}"
    head = text.encode("utf-8", "surrogatepass")[: MAX_BYTES - _MORE].decode("utf-8", "ignore")
    end = head.rfind(beginning) if root else -1
    return f"{text[:end]}; and {text.count(beginning, end)} more" if end > 0 else ""


def problems_of_failed_rule(rule: Validation, evaluated: object) -> tuple[Listed, ...]:
    """Return the problems that a failed rule lists; () if its message is a text or could not be computed."""
    return problems_of_cel_value(evaluated) if rule.lists_problems and isinstance(evaluated, list) else ()


def message_of_failed_rule(rule: Validation, evaluated: object) -> str:
    """Return the message of a failed rule. `evaluated` is the messageExpression's value, None if it failed or is not
    set.
    """
    return message_or_empty(evaluated) or rule.message or f"failed expression: {trim_space(rule.expression.source)}"
