"""Sends reviews to a running webhook over verified TLS, as an API server does."""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from webhook.admission.decode import review_of_attributes
from webhook.admission.respond import json_of_unread_part
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.deadline import Deadline
from webhook.errors import CallError, ConfigurationError, PatchError
from webhook.patch import jsonpatch
from webhook.rules.decisions import DenialCause, DenialDetails, DenialStatus, Verdict
from webhook.yamltext.jsontext import decode_any_json

_ENCODER: Final = msgspec.json.Encoder(enc_hook=json_of_unread_part)
TIMEOUT_S: Final = 10
"""Seconds that an API server waits for a webhook by default (admissionregistration/v1, timeoutSeconds)."""


class RemoteWebhook:
    """A client for a running webhook at an https address."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    @classmethod
    def connect(cls, url: str, ca: Path | None) -> RemoteWebhook:
        """Return a client for the webhook at `url`. An authority in `ca` must have signed the server's certificate.
        Without `ca`, an authority of the system must have signed the certificate.

        Raises:
            ConfigurationError: the address is not https or the certificates cannot be used.
        """
        if not _is_https_address(url):
            raise ConfigurationError(f"--server: `{url}` is not an https address such as `https://127.0.0.1:8443`")
        try:
            trust = ssl.create_default_context(cafile=str(ca) if ca else None)
        except ssl.SSLError:
            raise ConfigurationError(f"--ca: {ca} does not contain a PEM certificate") from None
        except OSError as error:
            raise ConfigurationError(f"--ca: {ca}: {(error.strerror or str(error)).lower()}") from None
        return cls(httpx.Client(base_url=url, verify=trust, timeout=TIMEOUT_S, trust_env=False))

    def close(self) -> None:
        self._client.close()

    def answer(self, attributes: Attributes, phase: Phase) -> Verdict:
        """Return the server's verdict on this request. The verdict has no decisions, because reviews carry none.

        Raises:
            CallError: the answer is not a review.
            ConfigurationError: the server cannot be reached, or its certificate is wrong.
        """
        try:
            got = self._client.post(
                f"/{phase}",
                params={"timeout": f"{TIMEOUT_S}s"},
                content=_ENCODER.encode(review_of_attributes(attributes)),
                headers={"content-type": "application/json"},
            )
        except httpx.HTTPError as error:
            where = f"{str(self._client.base_url).rstrip('/')}/{phase}"
            raise ConfigurationError(f"--server: {where}: {_reason_of_failed_call(error)}") from None
        if got.status_code != httpx.codes.OK:
            raise CallError(got.status_code, "", _message_of_answer(got))
        return _verdict_of_answer(attributes, got)


def _reason_of_failed_call(error: httpx.HTTPError) -> str:
    """Error numbers and places in OpenSSL's source are left out."""
    text = re.sub(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$", "", str(error))
    return text[:1].lower() + text[1:] or "no answer"


def _is_https_address(url: str) -> bool:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return address.scheme == "https" and bool(address.host)


def _message_of_answer(got: httpx.Response) -> str:
    """Return the message of a metav1.Status; otherwise the beginning of the answer."""
    try:
        return str(got.json()["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(got.text.split())[:200] or "an empty body"


def _verdict_of_answer(attributes: Attributes, got: httpx.Response) -> Verdict:
    """The API server checks an answer in the same way (webhook/request)."""
    try:
        response = got.json()["response"]
        if response["uid"] != attributes.uid:
            raise CallError(200, "", f"response.uid: expected `{attributes.uid}`, found `{response['uid']}`")
        patch = _patch_of_response(response)
        return Verdict(
            allowed=response["allowed"],
            status=None if response["allowed"] else _status_of_answer(response.get("status") or {}),
            warnings=tuple(response.get("warnings") or ()),
            audit_annotations=response.get("auditAnnotations") or {},
            patch=patch,
            patched_object=jsonpatch.apply_operations(attributes.object, patch) if patch else attributes.object,
        )
    except (ValueError, KeyError, TypeError, binascii.Error, PatchError) as error:
        raise CallError(200, "", f"not an answer to a review: {error}") from None


def _patch_of_response(response: Mapping[str, Any]) -> tuple[Mapping[str, JSON], ...]:
    if not response.get("patch"):
        return ()
    return tuple(decode_any_json(base64.b64decode(response["patch"], validate=True), Deadline()))


def _status_of_answer(status: Mapping[str, Any]) -> DenialStatus:
    return DenialStatus(
        code=int(status.get("code") or 400),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or "denied without explanation"),
        details=_details_of_status(status.get("details") or {}),
    )


def _details_of_status(details: Mapping[str, Any]) -> DenialDetails | None:
    causes = tuple(
        DenialCause(**{name: str(each.get(name) or "") for name in ("field", "message", "reason")})
        for each in details.get("causes") or ()
    )
    identity = {name: str(details.get(name) or "") for name in ("group", "kind", "name")}
    return DenialDetails(**identity, causes=causes) if details else None
