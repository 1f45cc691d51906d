"""The options of a review, such as the strictest action, advice, texts and a trace.

Settings of answers (webhook/settings/shared.py) are inherited as fields. A field with the name of another setting
gets the value of that setting in every verb (assembly.review_options_of_settings).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.evaluation.trace import ReviewTrace
from webhook.settings.shared import AnswerSettings

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(AnswerSettings):
    """The settings of answers, and the options below.

    With `enforcement_action` `audit`, objects are not mutated either.

    Attributes:
        advice: whether problems with level Advice are reported.
        trace: records why policies report something or nothing.
        is_stored: whether the object is already stored, although it is reviewed as if it were created.
        docs_address: the address of the documentation. Denials and warnings then link to it.
        sees_all_namespaces: whether messages may name objects of other namespaces, because an administrator reads the
            messages.
        authorizer: knows the rights of users. Without it, results that depend on rights are unknown.
        rules: the rules, groups and policies that are reported; empty means all.
        skip: the rules, groups and policies that are not reported.
    """

    advice: bool = False
    trace: ReviewTrace | None = None
    is_stored: bool = False
    docs_address: str = ""
    sees_all_namespaces: bool = False
    authorizer: Authorizer | None = None
    rules: Collection[str] = ()
    skip: Collection[str] = ()


DEFAULT: Final = ReviewOptions()
"""The options of an admission request."""
