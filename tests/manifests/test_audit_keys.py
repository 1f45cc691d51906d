"""Keys and expressions of audit annotations."""

import pytest

from tests.literals import policies, validating
from webhook.manifests import validation


def test_a_policy_without_a_name_has_no_audit_keys():
    (error,) = validation.audit_annotation_key_errors("", "k", ("spec",))
    assert "requires metadata.name be non-empty" in error.body


def test_a_long_audit_expression_is_refused():
    from webhook.errors import PolicyError

    with pytest.raises(PolicyError, match="must not exceed 5120 bytes"):
        policies(validating("true", auditAnnotations=[{"key": "k", "valueExpression": f"'{'x' * 5200}'"}]))
