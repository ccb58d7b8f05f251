"""A real server for the tests: AMBIT_TEST_URL, AMBIT_TEST_TOKEN and AMBIT_TEST_PROJECT say where it is."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from ambit_client import AsyncClient, Client

URL = os.environ.get("AMBIT_TEST_URL", "")
TOKEN = os.environ.get("AMBIT_TEST_TOKEN", "")


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, token=TOKEN) as client:
        yield client


@pytest.fixture
async def async_client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, token=TOKEN) as client:
        yield client
