// needs: python
import { describeToolExecutor } from "@ambit/testkit/vitest";
import plugin, { CodeExecutor } from "../src/index.js";

const tool = (runtime: "python" | "node", code: string) => ({
  name: "calculate",
  kind: "code",
  runtime,
  code,
});
describeToolExecutor(
  () => new CodeExecutor(plugin.config.parse({})),
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
