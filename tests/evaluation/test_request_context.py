"""The context of a request has only a few fields, and each field has a type."""

from __future__ import annotations

from typing import Any, get_type_hints

from msgspec.structs import fields

from webhook.cel.library.authorizer import Authorizer
from webhook.evaluation import request_context

MOST_FIELDS = 12


def test_the_context_has_few_fields_and_each_has_a_type() -> None:
    context = request_context.RequestContext
    hints = get_type_hints(context, vars(request_context) | {"Authorizer": Authorizer})
    assert len(fields(context)) <= MOST_FIELDS
    assert {each.name: hints[each.name] for each in fields(context) if hints[each.name] in (object, Any, dict)} == {}
