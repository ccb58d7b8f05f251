"""The table that every client passes: clients/cases.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ambit_client import AmbitError, AsyncClient, Client, models

CASES = json.loads((Path(__file__).parents[2] / "cases.json").read_text())
pytestmark = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def options_of(case: dict[str, Any]) -> dict[str, Any]:
    answers = case.get("answers", {})
    tools = {name: lambda _, output=output: output for name, output in answers.get("tools", {}).items()}
    return {
        **({"tools": tools} if tools else {}),
        **({"on_approval": lambda _: answers["approved"]} if "approved" in answers else {}),
        # The demo agent has no model that remembers its script.
        "continue_with": lambda request, _: request,
    }


def request_of(case: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": "\n".join(case["script"])}]
    return {"harness": "demo", "messages": messages, **case.get("request", {})}


def check_result(case: dict[str, Any], events: list[Any], result: models.RunResult) -> None:
    wire = result.model_dump(mode="json", by_alias=True)
    assert wire == {**wire, **case["ends"]}
    outputs = [str(event.output) for event in events if isinstance(event, models.ToolResultEvent)]
    if "toolOutput" in case:
        assert any(case["toolOutput"] in output for output in outputs), outputs


def check_failure(expected: dict[str, Any], error: AmbitError) -> None:
    assert (error.code, error.retryable) == (expected["code"], expected["retryable"])
    assert [gap.capability for gap in error.gaps] == expected.get("gaps", [])
    assert all(gap.fix for gap in error.gaps)
    for path in expected.get("issues", []):
        assert any(issue.path.startswith(path) for issue in error.issues), error.issues
    if "output" in expected:
        assert error.result is not None
        assert error.result.output == expected["output"]


def test_synchronous(case: dict[str, Any], client: Client) -> None:
    run = client.run(request_of(case), **options_of(case))
    if "fails" in case:
        with pytest.raises(AmbitError) as failure:
            run.result()
        check_failure(case["fails"], failure.value)
    else:
        check_result(case, list(run), run.result())


async def test_asynchronous(case: dict[str, Any], async_client: AsyncClient) -> None:
    run = async_client.run(request_of(case), **options_of(case))
    if "fails" in case:
        with pytest.raises(AmbitError) as failure:
            await run.result()
        check_failure(case["fails"], failure.value)
    else:
        check_result(case, [event async for event in run], await run.result())
