from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence

from . import models
from ._errors import AmbitError

#: How far the sender's clock and the time on the way may differ, in seconds, as Standard Webhooks says.
_TOLERANCE = 300


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    now: float | None = None,
) -> models.WebhookMessage:
    """Verifies a webhook as Standard Webhooks (https://www.standardwebhooks.com) specifies.

    `body` is exactly what arrived; `secrets` are `whsec_…`: the one that the server signs with, or several while it changes.

    Raises AmbitError if no secret signed it, or it is older or newer than five minutes; ValueError for what is no secret.
    """
    by_name = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = by_name.get("webhook-id", ""), by_name.get("webhook-timestamp", "")
    content = body.encode() if isinstance(body, str) else body
    sent_at = float(timestamp) if timestamp.isdigit() else float("-inf")
    if not message_id or abs((time.time() if now is None else now) - sent_at) > _TOLERANCE:
        raise _refused("its time or id is missing, or too far from now")
    signed = f"{message_id}.{timestamp}.".encode() + content
    signatures = [
        _bytes_of(signature[3:])
        for signature in by_name.get("webhook-signature", "").split(" ")
        if signature.startswith("v1,")
    ]
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        key = _bytes_of(secret.removeprefix("whsec_"))
        if not key:
            raise ValueError("a webhook's secret is `whsec_` and base64")
        expected = hmac.digest(key, signed, hashlib.sha256)
        if any(hmac.compare_digest(expected, signature) for signature in signatures):
            return models.WebhookMessage.model_validate_json(content)
    raise _refused("no secret of this receiver signed it")


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _refused(reason: str) -> AmbitError:
    return AmbitError(f"the webhook isn't valid: {reason}", code="unauthorized")
