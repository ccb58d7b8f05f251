import assert from "node:assert/strict";
import type { Publication } from "@ambit/core/plugin";
import { type ServerScript, servedTools } from "./mcp-program.js";
import type { ToolSourceStage } from "./tool-source-stage.js";

/** A requirement on every tool source, tested with the server that the script names. */
export interface ToolSourceCheck {
  readonly title: string;
  readonly script: ServerScript;
  check(stage: ToolSourceStage): Promise<void>;
}

const failsToConnect = async (stage: ToolSourceStage) => {
  await assert.rejects(stage.connect(), "it published a server that doesn't work");
  await stage.scope.close();
  await Promise.all(stage.spawned.map(({ exit }) => exit));
};

export const toolSourceChecks: readonly ToolSourceCheck[] = [
  {
    title: "publishes the tools with their names, descriptions and schemas unchanged",
    script: "normal",
    check: async (stage) => {
      const { name, tools } = await stage.connect();
      assert.equal(name, "kit");
      assert.deepEqual(
        tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
        servedTools.map((tool) => ({
          name: tool.name,
          description: "description" in tool ? tool.description : undefined,
          inputSchema: tool.inputSchema,
        })),
      );
      assert.equal(tools.find((tool) => tool.name === "look")?.readOnly, true);
    },
  },
  {
    title: "passes on a call's arguments and its result unchanged",
    script: "normal",
    check: async (stage) => {
      const given = { text: 'snow ☃ \u2028 \\ " </script>', deep: [{ a: null }], long: "x".repeat(10_000) };
      const { output, isError } = await call(await stage.connect(), "echo", given);
      assert.deepEqual(JSON.parse(output), given);
      assert.equal(isError, false);
    },
  },
  {
    title: "marks a failed call as failed",
    script: "normal",
    check: async (stage) => {
      assert.deepEqual(await call(await stage.connect(), "fail"), { output: "it failed", isError: true });
    },
  },
  {
    title: "publishes and calls only the tools that the request includes",
    script: "normal",
    check: async (stage) => {
      const policy = { tools: { mode: "include" as const, names: ["look"] } };
      const publication = await stage.connect(stage.serverOf({ policy }));
      assert.deepEqual(
        publication.tools.map(({ name }) => name),
        ["look"],
      );
      assert.equal((await call(publication, "echo", { text: "hi" })).isError, true);
    },
  },
  {
    title: "publishes no credential",
    script: "normal",
    check: async (stage) => {
      assert.ok(!JSON.stringify(await stage.connect()).includes(stage.secret));
    },
  },
  {
    title: "settles a cancelled call",
    script: "normal",
    check: async (stage) => {
      const publication = await stage.connect();
      const abort = new AbortController();
      const waiting = call(publication, "wait", {}, abort.signal);
      abort.abort(new Error("the agent cancelled the call"));
      assert.equal((await waiting).isError, true);
    },
  },
  {
    title: "settles an open call when the run ends, and leaves no process",
    script: "normal",
    check: async (stage) => {
      const waiting = call(await stage.connect(), "wait");
      await stage.scope.close();
      assert.equal((await waiting).isError, true);
      await Promise.all(stage.spawned.map(({ exit }) => exit));
    },
  },
  { title: "fails for a server that returns an error", script: "refuses", check: failsToConnect },
  { title: "fails for a server that ends at once", script: "exits-at-once", check: failsToConnect },
  {
    title: "stops waiting for a server that never answers when the run ends",
    script: "never-answers",
    check: stopsWaiting,
  },
  {
    title: "doesn't hang on a server without MCP",
    script: "no-server",
    check: stopsWaiting,
  },
];

async function stopsWaiting(stage: ToolSourceStage): Promise<void> {
  const connecting = stage.connect().then(
    () => "it published a server that doesn't work",
    () => "failed",
  );
  await stage.scope.close();
  assert.equal(await connecting, "failed");
  await Promise.all(stage.spawned.map(({ exit }) => exit));
}

function call(publication: Publication, name: string, given = {}, signal = new AbortController().signal) {
  return publication.call({ name, arguments: given, signal });
}
