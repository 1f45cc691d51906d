"""Reads webhook configurations (admissionregistration.k8s.io/v1) of claimgate and of other projects.

Unknown fields are ignored, because API servers check these objects.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.errors import ConfigurationError
from webhook.manifests.models import LabelSelector, MatchCondition, NamedRule
from webhook.text.model_errors import describe_model_error

GROUP: Final = "admissionregistration.k8s.io"
KINDS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


class _WebhookModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore", defer_build=True)


class ServiceReference(_WebhookModel):
    """The Service of a webhook."""

    namespace: str
    name: str
    port: int = 443


class WebhookClientConfig(_WebhookModel):
    """How API servers call the webhook: the Service or URL, and the trusted certificates in base64."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class Webhook(_WebhookModel):
    """One webhook, with the defaults of the API server."""

    name: str
    client_config: WebhookClientConfig
    rules: list[NamedRule] = []
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    timeout_seconds: int = 10
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_conditions: list[MatchCondition] = []


class ConfigurationMetadata(_WebhookModel):
    """The name of a configuration."""

    name: str = ""


class WebhookConfiguration(_WebhookModel):
    """A validating or mutating webhook configuration."""

    kind: str
    metadata: ConfigurationMetadata = Field(default_factory=ConfigurationMetadata)
    webhooks: list[Webhook] = []


def is_webhook_configuration(value: JSON) -> bool:
    """Return whether an object is a webhook configuration, by apiVersion and kind."""
    return isinstance(value, dict) and value.get("kind") in KINDS and value.get("apiVersion") == f"{GROUP}/v1"


def parse_webhook_configuration(value: dict[str, JSON]) -> WebhookConfiguration:
    """Read a webhook configuration.

    Raises:
        ConfigurationError: a field has a wrong type.
    """
    try:
        return WebhookConfiguration.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigurationError(
            f"{value['kind']}: {path_as_text(first['loc'])}: {describe_model_error(first)}"
        ) from None
