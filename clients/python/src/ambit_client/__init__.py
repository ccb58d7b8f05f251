"""A client of Ambit's HTTP API. `Client` and `AsyncClient` have the same methods."""

from . import models
from ._async import AsyncClient, AsyncRun
from ._errors import AmbitError
from ._records import Record, UnknownEvent
from ._sync import Client, Run
from ._webhooks import verify_webhook

__all__ = [
    "AmbitError",
    "AsyncClient",
    "AsyncRun",
    "Client",
    "Record",
    "Run",
    "UnknownEvent",
    "models",
    "verify_webhook",
]
