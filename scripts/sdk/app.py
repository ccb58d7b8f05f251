"""The SDK's own agent service: its handler behind its own route, adapter and tracing."""

import importlib.metadata
import os

import agenta as ag
import uvicorn
from agenta.sdk.agents.handler import agent_v0
from agenta.sdk.decorators.routing import create_app, route

ag.init()
app = create_app()
route("/", app=app, flags={"is_agent": True})(agent_v0)
print("agenta", importlib.metadata.version("agenta"), flush=True)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["SDK_PORT"]), log_level="warning")
