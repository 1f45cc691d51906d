"""Recognizes placeholders: texts that a shell, a template engine, a controller or a person replaces later.

Only this module defines placeholders. A placeholder may stand in place of a value of any type. Rules about names or
amounts skip placeholders.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.apimachinery.attributes import JSON

_VARIABLE: Final = re.compile(r"\$[A-Za-z_{(]|\{\{")
_BLANKS: Final = (
    ("<", re.compile(r"<(?:[^\W\d]|%)[^<>\n]*>")),
    ("__", re.compile(r"__[a-z0-9]*[A-Z][A-Za-z0-9_-]*__")),
    ("[[", re.compile(r"\[\[(?!\[) ?[\w.-]+ ?\]\]")),
    ("((", re.compile(r"\(\((?!\() ?[\w.-]+ ?\)\)")),
    ("@", re.compile(r"@[A-Z][A-Z0-9_-]*@")),
    ("%", re.compile(r"%[A-Z][A-Z0-9_-]*%")),
    ("#{", re.compile(r"#\{[A-Za-z_{][^{}\n]*\}")),
)
"""Each kind of blank to fill in: the sign at its beginning, and its pattern. On 100,000 such signs, one of these
patterns takes 2 milliseconds, and a common pattern for all kinds would take 10.
"""
_SIGN_OF_BLANK: Final = re.compile(r"[<@%]|__|\[\[|\(\(|#\{")
_WORD_IN_BRACKETS: Final = re.compile(r"[A-Za-z_][\w. -]*")
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_CAPITALS: Final = re.compile(r"(?!(?:TRUE|FALSE|NULL|NONE|AUTO|FOUR|FIVE|NINE|ZERO)$)[A-Z]{4,}")
"""Matches a word of capital letters that is never the final value of a number or boolean."""
_IN_SIGNS: Final = re.compile(r"\([A-Za-z_]\w*\)|__[A-Za-z]\w*__")
"""Matches a word in single parentheses or between `__`, which is never a final number, boolean or amount."""
_TYPE: Final = re.compile(r"[Ss]tring|[Ii]nt(?:eger)?|[Nn]umber|[Bb]ool(?:ean)?|[Oo]bject")
"""Matches the name of a type. A file that documents all fields has such a name in place of a number, boolean or object.
"""
_CHOICE: Final = re.compile(r"[A-Za-z]\w{0,99}(?: ?\| ?[A-Za-z]\w{0,99})+")
"""Matches the allowed values, as a file that documents all fields has them: `Always | Never`."""
_KIND_OF_VALUE: Final = re.compile(r"[A-Z][A-Za-z_]{0,99}(?:I[dD]|N(?:ame|AME)|Arn|ARN|U(?:rl|ri|RL|RI)|Address)")
"""Matches a word for a kind of value, such as `FileSystemId`. No field has such a word as its final value."""
_OF_SECRETS: Final = ("ref+", "ENC[")
"""The beginnings of a text that vals replaces, such as `ref+vault://...`, and of a text that SOPS decrypts."""
_WORDS: Final = ("PLACEHOLDER", "REPLACEME", "CHANGEME", "placeholder_", "_placeholder")
_DOTS: Final = frozenset(("...", "…"))
_SIGN: Final = re.compile("|".join(map(re.escape, ("$", "{{", *(sign for sign, _ in _BLANKS), *_WORDS, *_DOTS))))
"""Matches a sign or word that every placeholder has, and few other texts."""


def is_placeholder(text: str) -> bool:
    """Return whether a text is or contains a placeholder.

    Placeholders are `gpu-${N}`, `<queue>`, `[[queue]]`, `__NUM_NODES__`, `__NUM-NODES__`, `__numNodes__`, `@NODES@`,
    `#{QUEUE}#`, `PLACEHOLDER_QUEUE`, `queue_placeholder` and `...`. Python has names such as `__init__`, without
    capital letters. Names and amounts that Kubernetes accepts have none of these signs, so `gpu-1` is no placeholder.
    """
    return _SIGN.search(text) is not None and ("$" in text or "{{" in text or _is_blank_to_fill_in(text))


def is_placeholder_for_non_text(text: str) -> bool:
    """Return whether a text in place of a number or boolean is a placeholder.

    In addition to the texts of `is_placeholder`, the following are placeholders: `NUM_NODES`, `PORT`, `(port)` and
    `__port__` for sed, `ref+vault://a` for vals, `ENC[AES256_GCM,type:int]` for SOPS, and the type `Boolean`. In a
    field for text, such a word may be the final value.
    """
    is_capitals = _CONSTANT.fullmatch(text) is not None or _CAPITALS.fullmatch(text) is not None
    is_word = is_capitals or _IN_SIGNS.fullmatch(text) is not None or _TYPE.fullmatch(text) is not None
    return is_word or text.startswith(_OF_SECRETS) or is_placeholder(text)


def is_placeholder_for_name(text: str) -> bool:
    """Return whether a text in place of an object's name has a placeholder, such as `QUEUE_NAME` or `MODEL_NAME-web`.

    Names have no capital letters and no `_`, so a constant is never a part of a final name. `GPU` alone may be an
    intended name.
    """
    return is_placeholder(text) or any(_CONSTANT.fullmatch(part) for part in text.replace(".", "-").split("-"))


def is_unquoted_bracket_placeholder(value: JSON) -> bool:
    """Return whether YAML read a list or a mapping from a placeholder without quotes: `[[name]]`, `{name}`, `[VpcId]`.

    The field is for a number, a text or a boolean. A list of one list of one word, or a mapping of one word to nothing,
    is then always a placeholder. Files that document all fields have `[Always | Never]`, and `[{name: String}]` for
    labels.
    """
    if isinstance(value, dict):
        name, inner_value = next(iter(value.items()), (None, None))
        return len(value) == 1 and inner_value is None and _is_match(_WORD_IN_BRACKETS, name)
    if not isinstance(value, list) or len(value) != 1:
        return False
    item = value[0]
    if isinstance(item, list):
        return len(item) == 1 and _is_match(_WORD_IN_BRACKETS, item[0])
    if isinstance(item, dict):
        return len(item) == 1 and _is_match(_TYPE, next(iter(item.values())))
    return _is_match(_CHOICE, item) or _is_match(_KIND_OF_VALUE, item)


def _is_match(pattern: re.Pattern[str], text: JSON) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def has_placeholder_variable(text: str) -> bool:
    """Return whether a text has a named placeholder: `g-$N`, `${N}`, `$(N)`, `{{ .n }}` and `<n>`, but not `*$@`.

    Use this function for texts in which a single `$` is a mistake, or ends a pattern.
    """
    return _VARIABLE.search(text) is not None or _is_blank_to_fill_in(text)


def _is_blank_to_fill_in(text: str) -> bool:
    is_in_angles = text.startswith("< ") and text.endswith(">")
    if is_in_angles or text in _DOTS or any(word in text for word in _WORDS):
        return True
    if _SIGN_OF_BLANK.search(text) is None:
        return False
    return any(sign in text and blank.search(text) is not None for sign, blank in _BLANKS)
