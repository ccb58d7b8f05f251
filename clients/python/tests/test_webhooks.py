from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest

from ambit_client import AmbitError, models, verify_webhook

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
NOW = 1_800_000_000
BODY = json.dumps(
    {
        "type": "interaction.expired",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "data": {"runId": "r", "interactionId": "i", "kind": "user_approval"},
    }
)


def headers(key: bytes = KEY, at: int = NOW) -> dict[str, str]:
    signature = hmac.digest(key, f"m.{at}.{BODY}".encode(), hashlib.sha256)
    signed = base64.b64encode(signature).decode()
    return {"Webhook-Id": "m", "Webhook-Timestamp": str(at), "Webhook-Signature": f"v1,{signed}"}


def test_a_message_that_a_known_secret_signed() -> None:
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    message = verify_webhook(BODY, headers(), [other, SECRET], NOW)
    assert isinstance(message.root, models.InteractionExpiredMessage)


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (BODY, headers(key=b"y" * 32)),
        (BODY.replace('"r"', '"s"'), headers()),
        (BODY, headers(at=NOW - 301)),
        (BODY, {**headers(), "Webhook-Signature": "v1,"}),
        (BODY, {}),
    ],
)
def test_anything_else_is_refused(body: str, sent: dict[str, str]) -> None:
    with pytest.raises(AmbitError, match="isn't valid"):
        verify_webhook(body, sent, SECRET, NOW)


def test_a_secret_without_a_key_verifies_nothing() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(BODY, headers(key=b""), "whsec_", NOW)
