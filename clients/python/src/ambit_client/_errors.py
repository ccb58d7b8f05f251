"""The one error of this client, and how a server's refusals become it."""

from __future__ import annotations

import json
from typing import Any

import httpx
from pydantic import ValidationError

from . import models


class AmbitError(Exception):
    """A request that the server refused, a run that failed, or a server that can't be reached."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
        result: models.FailedResult | None = None,
    ) -> None:
        super().__init__(message)
        #: A failure's code on the wire, `unreachable` where no server answers, or `invalid_response`.
        self.code = code
        #: Whether the same request may succeed later without a change.
        self.retryable = retryable
        #: The response's status; None without a response, and for a run that failed within its stream.
        self.status = status
        #: Seconds that the server asks to wait before the next attempt.
        self.retry_after = retry_after
        #: The failed run's whole result, if it came to one.
        self.result = result
        #: What can't be guaranteed, each with its fix, where the boundary was refused.
        self.gaps: list[models.Gap] = (result and result.failure.gaps) or []
        #: What is wrong with the request, each with its path.
        self.issues: list[models.Issue] = (result and result.failure.issues) or []


def failure_of(result: models.FailedResult, status: int | None = None, retry_after: float | None = None) -> AmbitError:
    return AmbitError(
        result.error,
        code=result.failure.code,
        retryable=result.failure.retryable,
        status=status,
        retry_after=retry_after,
        result=result,
    )


def refusal_of(response: httpx.Response) -> AmbitError:
    """The reason of an answer that isn't 2xx and was read. A refusal is a result, and in a stream the only record."""
    status = response.status_code
    seconds = response.headers.get("retry-after", "")
    retry_after = float(seconds) if seconds.isdigit() else None
    try:
        body: Any = json.loads(response.content)
        result = models.FailedResult.model_validate(body.get("result", body))
    except (ValueError, AttributeError, ValidationError):
        return AmbitError(
            f"the server answered {status}, without a reason of Ambit's",
            code="invalid_response",
            retryable=status == 429 or status >= 500,
            status=status,
            retry_after=retry_after,
        )
    return failure_of(result, status, retry_after)


def unreachable(url: str, cause: Exception) -> AmbitError:
    error = AmbitError(
        f"no server answers at {url}: start it with `ambit serve`, or check the URL",
        code="unreachable",
        retryable=True,
    )
    error.__cause__ = cause
    return error


def is_transient(error: AmbitError) -> bool:
    """Whether the same request may be sent again: a failed run's own error is no reason to begin another one."""
    if not error.retryable:
        return False
    status = error.status or 0
    return error.code == "unreachable" or status == 429 or status >= 500
