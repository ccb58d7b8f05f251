import { CallbackExecutor, configSchema as callbackConfig } from "@ambit/executor-callback";
import { clientExecutor } from "@ambit/executor-client";
import codePlugin, { CodeExecutor } from "@ambit/executor-code";
import { describe } from "vitest";
import { describeToolExecutor } from "../../src/index.js";

describe("client", () => {
  describeToolExecutor(
    () => clientExecutor,
    () => [{ name: "any", tool: { name: "pick", kind: "client" }, status: "parked" }],
  );
});

describe("callback", () => {
  const succeeded = {
    body: JSON.stringify({ call: { data: { status: { code: "STATUS_CODE_OK" }, content: '{"found":1}' } } }),
  };
  const failed = {
    body: JSON.stringify({ call: { status: { code: "STATUS_CODE_ERROR", message: "no such thing" } } }),
  };
  describeToolExecutor(
    () => new CallbackExecutor(callbackConfig.parse({})),
    (world) => {
      const tool = { name: "find", kind: "callback", callRef: "tools.find" };
      const request = { toolCallback: { endpoint: `${world.url}/tools/call` } };
      const common = { tool, request, arguments: { query: "x" } };
      return [
        { ...common, name: "a result", prepare: () => world.answer(succeeded), status: "completed" },
        { ...common, name: "a failure", prepare: () => world.answer(failed), status: "failed" },
        {
          ...common,
          name: "a bare answer",
          prepare: () => world.answer({ body: "<p>" }),
          status: "completed",
          output: "<p>",
        },
        {
          ...common,
          name: "a status",
          prepare: () => world.answer({ status: 500, body: "oops" }),
          status: "failed",
        },
        { ...common, name: "no answer", prepare: () => world.answer("never"), status: "never" },
      ];
    },
  );
});

describe("code", () => {
  const tool = (runtime: "python" | "node", code: string) => ({
    name: "calculate",
    kind: "code",
    runtime,
    code,
  });
  describeToolExecutor(
    () => new CodeExecutor(codePlugin.config.parse({})),
    () => [
      {
        name: "python",
        tool: tool("python", "def main(**kwargs):\n    return kwargs['number'] + 1\n"),
        arguments: { number: 41 },
        status: "completed",
        output: /42/,
      },
      {
        name: "a failure",
        tool: tool("python", "def main(**kwargs):\n    raise ValueError('no')\n"),
        status: "failed",
      },
      {
        name: "endless",
        tool: tool("python", "import time\ndef main(**kwargs):\n    time.sleep(120)\n"),
        status: "never",
      },
    ],
  );
});
