from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

import httpx
import pytest

from ambit_client import AmbitError, AsyncClient, Client, Record, UnknownEvent, models
from ambit_client._records import record_of

from .conftest import TOKEN, URL


def script(*lines: str) -> dict[str, Any]:
    return {"harness": "demo", "messages": [{"role": "user", "content": "\n".join(lines)}]}


def test_a_request_as_a_model(client: Client) -> None:
    request = models.RunRequest.model_validate(script("say hello"))
    assert client.run(request).result().output == "hello"


def test_the_events_and_then_the_result(client: Client) -> None:
    run = client.run(script("say hello", "say bye"))
    deltas = [event.delta for event in run if isinstance(event, models.MessageDeltaEvent)]
    result = run.result()
    assert "".join(deltas) == result.output == "hello\nbye"
    assert result.run_id == run.id


def test_a_client_tool_that_raises_tells_the_model(client: Client) -> None:
    def fail(_: Any) -> None:
        raise ValueError("no seats")

    tool = {"name": "seat", "kind": "client", "inputSchema": {"type": "object"}}
    run = client.run({**script("call seat", "say done"), "customTools": [tool]}, tools={"seat": fail})
    assert any("no seats" in str(event) for event in run)
    assert run.result().output == "done"


def test_an_approval_that_raises_cancels_the_run(client: Client) -> None:
    def fail(_: Any) -> None:
        raise ValueError("closed")

    asking = {**script("run echo 18", "sleep 60000"), "permissions": {"default": "ask"}}
    run = client.run(asking, on_approval=fail)
    with pytest.raises(ValueError, match="closed"):
        run.result()
    assert client.attach(run.id).result().stop_reason == "cancelled"


async def test_an_answer_may_be_a_coroutine(async_client: AsyncClient) -> None:
    async def approve(question: models.InteractionRequestEvent) -> bool:
        await asyncio.sleep(0)
        return question.kind == "user_approval"

    asking = {**script("run echo 18", "say done"), "permissions": {"default": "ask"}}
    run = async_client.run(asking, on_approval=approve)
    assert (await run.result()).output == "done"


def test_cancel(client: Client) -> None:
    run = client.run(script("say begun", "sleep 60000"))
    for event in run:
        if isinstance(event, models.MessageDeltaEvent):
            assert run.cancel()
    assert run.result().stop_reason == "cancelled"
    assert not run.cancel()


def test_leaving_the_block_early_cancels(client: Client) -> None:
    with client.run(script("say begun", "sleep 60000")) as run:
        next(event for event in run if isinstance(event, models.MessageDeltaEvent))
    assert client.attach(run.id).result().stop_reason == "cancelled"


def test_start_attach_list_and_delete(client: Client) -> None:
    started = client.start({**script("say hello"), "sessionId": "python"})
    events = list(client.attach(started.run_id))
    assert list(client.attach(started.run_id, after=2)) == events[2:]
    assert [run.run_id for run in client.each_run(session_id="python")] == [started.run_id]
    assert "python" in [session.session_id for session in client.sessions()]
    assert client.close_session("python").ended
    assert client.delete_run(started.run_id).ok
    with pytest.raises(AmbitError) as failure:
        client.run_info(started.run_id)
    assert failure.value.status == 404


def test_outputs(client: Client) -> None:
    request = {
        **script("run mkdir a && echo precious > a/b.txt"),
        "permissions": {"default": "allow"},
        "outputs": {"include": ["**"]},
    }
    result = client.run(request).result()
    assert [file.path for file in client.files(result.run_id).files] == ["a/b.txt"]
    assert client.file(result.run_id, "a/b.txt") == b"precious\n"
    (file,) = client.files(result.run_id, url_ttl_ms=60_000).files
    assert httpx.get(f"{URL}{file.url}").content == b"precious\n"
    with client.archive(result.run_id) as response:
        assert b"precious" in b"".join(response.iter_bytes())


def test_a_token_of_one_session(client: Client) -> None:
    client.run({**script("say hello"), "sessionId": "python-page"}).result()
    made = client.make_token({"sessionId": "python-page", "may": ["read"]})
    with Client(URL, token=made.token) as page:
        assert [run.session_id for run in page.runs()] == ["python-page"]
        with pytest.raises(AmbitError) as failure:
            page.plugins()
    assert (failure.value.code, failure.value.status) == ("unauthorized", 403)


def test_plan_plugins_health_and_ready(client: Client) -> None:
    assert client.plan(script("say x")).plan.sandbox == "local"
    assert client.plugins().actors
    assert client.health().status == "ok"
    assert client.ready().status


def test_a_wrong_token_and_no_server() -> None:
    with Client(URL, token="wrong") as client, pytest.raises(AmbitError) as failure:
        client.plugins()
    assert (failure.value.code, failure.value.status) == ("unauthorized", 401)
    with Client("http://127.0.0.1:9") as client, pytest.raises(AmbitError, match="ambit serve") as failure:
        client.run(script("say x"), reconnect_timeout=0).result()
    assert (failure.value.code, failure.value.retryable) == ("unreachable", True)


class CuttingTransport(httpx.HTTPTransport):
    """Cuts the answers of as many streams as `cuts` has after that many bytes."""

    def __init__(self, cuts: list[int]) -> None:
        super().__init__()
        self.cuts = cuts
        self.streams = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if "ndjson" not in response.headers.get("content-type", ""):
            return response
        self.streams += 1
        if not self.cuts:
            return response
        whole, room = response.stream, self.cuts.pop(0)

        class Cut(httpx.SyncByteStream):
            def __iter__(self) -> Any:
                read = 0
                assert isinstance(whole, httpx.SyncByteStream)
                for data in whole:
                    yield data[: room - read]
                    read += len(data)
                    if read >= room:
                        raise httpx.ReadError("cut")

            def close(self) -> None:
                whole.close()

        return httpx.Response(response.status_code, headers=response.headers, stream=Cut())


def cutting_client(*cuts: int) -> tuple[Client, CuttingTransport]:
    transport = CuttingTransport(list(cuts))
    return Client(URL, token=TOKEN, http_client=httpx.Client(transport=transport)), transport


def test_a_stream_that_is_cut_anywhere_loses_no_event_and_doubles_none(client: Client) -> None:
    started = client.start(script("say 世界"))
    whole = list(client.attach(started.run_id))
    events = httpx.get(f"{URL}/runs/{started.run_id}/events", headers={"authorization": f"Bearer {TOKEN}"})
    size = len(events.content)
    assert size > 200
    for cut in range(1, size, 1 if os.environ.get("AMBIT_SOAK") == "1" else 131):
        cutting, transport = cutting_client(cut)
        run = cutting.attach(started.run_id)
        assert list(run) == whole, f"cut at byte {cut}"
        assert run.result().run_id == started.run_id
        assert transport.streams == 2


def test_a_run_that_is_cut_again_and_again_runs_once(client: Client) -> None:
    cutting, transport = cutting_client(60, 0, 700, 700)
    request = {
        **script("run echo once >> runs.txt", "run cat runs.txt", "say two"),
        "permissions": {"default": "allow"},
    }
    run = cutting.run(request)
    outputs = [str(event.output) for event in run if isinstance(event, models.ToolResultEvent)]
    assert [output.strip() for output in outputs].count("once") == 1
    assert run.result().output == "two"
    assert transport.streams > 2


def test_an_event_of_a_newer_server() -> None:
    body = (
        '{"kind":"event","at":"2026-01-01T00:00:00.001Z","event":{"type":"thunder","loud":true}}\n{"kind":"result","result":'
        '{"ok":true,"runId":"r","events":[]}}\n'
    )

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body, headers={"content-type": "application/x-ndjson"})

    client = Client(http_client=httpx.Client(transport=httpx.MockTransport(answer)))
    event = UnknownEvent("thunder", {"type": "thunder", "loud": True})
    assert list(client.attach("r")) == [event]
    at = datetime(2026, 1, 1, microsecond=1_000, tzinfo=timezone.utc)
    assert list(client.attach("r").records()) == [Record(at, event)]


def test_an_event_without_a_time() -> None:
    line = b'{"kind":"event","event":{"type":"message","text":"old"}}'
    assert record_of(line) == Record(None, models.MessageEvent(type="message", text="old"))
    with pytest.raises(AmbitError, match="no record"):
        record_of(b'{"kind":"event","at":"noon","event":{"type":"message","text":"old"}}')


async def test_runs_side_by_side(async_client: AsyncClient) -> None:
    runs = [async_client.run(script(f"say {name}")) for name in ("one", "two", "three")]
    results = await asyncio.gather(*(run.result() for run in runs))
    assert [result.output for result in results] == ["one", "two", "three"]


def test_importing_it_warns_of_nothing() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import ambit_client"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
