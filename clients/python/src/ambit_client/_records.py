"""The records of a stream: pure, so that both clients read them in the same way."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from . import models
from ._errors import AmbitError

#: Bytes of one record: a result has 16 Mi characters of texts at most, which JSON may write as six each.
MAX_RECORD_BYTES = 128 * 1024 * 1024


class StreamCut(Exception):
    """A stream ended, or was silent for too long, before its result. The run may go on."""


@dataclass(frozen=True)
class UnknownEvent:
    """An event of a type that this version of the client doesn't have."""

    type: str
    raw: dict[str, Any] = field(repr=False)


Event = models.Event | UnknownEvent
Result = models.RunResult | models.FailedResult


@dataclass(frozen=True)
class Record:
    """An event, and when it happened: None for one that an earlier version of the server stored."""

    at: datetime | None
    event: Event


_event: TypeAdapter[models.Event] = TypeAdapter(Annotated[models.Event, Field(discriminator="type")])


class LineReader:
    """Splits the bytes of a stream into whole lines. What is cut off at its end isn't one."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        *lines, remainder = self._buffer.split(b"\n") if b"\n" in data else (self._buffer,)
        self._buffer = bytearray(remainder)
        if len(self._buffer) > MAX_RECORD_BYTES:
            raise _not_a_record("it is too long")
        # Blank lines keep a silent stream alive.
        return [bytes(line) for line in lines if line.strip()]


def record_of(line: bytes) -> Record | Result:
    """The event with its time, or the result, in a line.

    Raises AmbitError for what isn't a record.
    """
    try:
        record = json.loads(line)
        kind, value, time = record["kind"], record[record["kind"]], record.get("at")
        # Python 3.10 reads no Z.
        at = None if time is None else datetime.fromisoformat(time.replace("Z", "+00:00"))
    except (ValueError, TypeError, KeyError, AttributeError) as cause:
        raise _not_a_record(f"it begins with {line[:40]!r}") from cause
    if kind == "result":
        return result_of(value)
    try:
        return Record(at, _event.validate_python(value))
    except ValidationError:
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            return Record(at, UnknownEvent(value["type"], value))
        raise _not_a_record("its event has no type") from None


def result_of(value: Any) -> Result:
    model = models.RunResult if isinstance(value, dict) and value.get("ok") is True else models.FailedResult
    try:
        return model.model_validate(value)
    except ValidationError as cause:
        raise _not_a_record("its result isn't one") from cause


def _not_a_record(reason: str) -> AmbitError:
    return AmbitError(f"the server sent a line that is no record: {reason}", code="invalid_response")


async def resolved(value: Any) -> Any:
    """What an answering function returned, which may be asynchronous."""
    return await value if inspect.isawaitable(value) else value
