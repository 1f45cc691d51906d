"""Converts attributes back to the AdmissionReview that an API server would send: the reverse of decode.py."""

from __future__ import annotations

from webhook.admission import wire
from webhook.attributes import JSON, Attributes
from webhook.evaluation.request_variables import request_as_cel_value


def review_of_attributes(attributes: Attributes) -> JSON:
    """Return the AdmissionReview that an API server would send for these attributes."""
    sent = {
        "uid": attributes.uid,
        **request_as_cel_value(attributes, attributes.resource, attributes.kind),
        "object": attributes.object,
        "oldObject": attributes.old_object,
    }
    return {"apiVersion": wire.API_VERSION, "kind": wire.KIND, "request": sent}
