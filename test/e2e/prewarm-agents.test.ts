// needs: pgrep
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { startModelServer } from "@ambit/model-server";
import { expect, it } from "vitest";
import { allOf, bodyOf, demo, emptyFolder, ndjson, recordsOf, type Server, serve } from "./support/ambit.js";
import { callbackServer, callbackTool } from "./support/callback-server.js";
import { prewarmedAgents } from "./support/configurations.js";

const boundary = { network: "off", filesystem: "workspace", secrets: "hidden" };
const patience = { timeout: 90_000 };

async function waits({ url }: Server, count: number): Promise<void> {
  const waiting = async () =>
    /^ambit_prewarm_waiting (\d+)/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
  await expect.poll(waiting, patience).toBe(`${count}`);
}

it("Gemini CLI, started ahead, gets the run's tools, instructions, model and key when a run has it", {
  timeout: 120_000,
}, async () => {
  await using model = await startModelServer({ expectedKey: "test-key-123" });
  const platform = await callbackServer((_name, { key }) => ({ [String(key)]: 42 }));
  const server = await serve({ PREWARM_AGENTS: "gemini", AMBIT_LOG_LEVEL: "debug" }, prewarmedAgents);
  await waits(server, 1);
  expect(model.requests).toEqual([]);
  const response = await server.post(
    "/run",
    {
      harness: "gemini",
      model: "gemini-2.5-flash",
      sandboxPermission: { ...boundary, enforcement: "best_effort" },
      messages: [{ role: "user", content: '[[call lookup {"key":"alpha"}]]' }],
      agentsMd: "INSTRUCTIONS OF THIS RUN",
      customTools: [
        callbackTool("lookup", {
          description: "Looks a key up.",
          inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
        }),
      ],
      permissions: { default: "allow" },
      toolCallback: { endpoint: platform.endpoint },
      modelConnection: {
        endpoint: { baseUrl: model.url },
        credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "test-key-123" }],
      },
    },
    ndjson,
  );
  const records = await allOf(recordsOf(response));
  expect(records.at(-1), JSON.stringify(records.at(-1))).toMatchObject({
    kind: "result",
    result: {
      ok: true,
      output: expect.stringContaining("42"),
      receipt: { evidence: { "agent.startedAhead": true }, visibleCredentials: [] },
    },
  });
  expect(platform.calls).toMatchObject([{ name: "ref__lookup", arguments: { key: "alpha" } }]);
  const answered = await model.waitFor(({ toolResults }) => toolResults.length === 1);
  expect(answered.credentials).toEqual(["test-key-123"]);
  expect(JSON.stringify(answered.body)).toContain("INSTRUCTIONS OF THIS RUN");
  expect(JSON.stringify(records) + server.log()).not.toContain("test-key-123");
});

it("the demo agent, started ahead in a container, is given to one run, and so is the next", {
  timeout: 180_000,
}, async (context) => {
  const reason = unavailableReason("runc");
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const { socket, image } = dockerEngine();
  const docker = { engine: `unix://${socket}`, image, network: "none", dataFolder: await emptyFolder() };
  const server = await serve(
    { PREWARM_AGENTS: "demo", PREWARM_DOCKER: JSON.stringify(docker), AMBIT_LOG_LEVEL: "debug" },
    prewarmedAgents,
  );
  for (const text of ["one", "two"]) {
    await waits(server, 1);
    const body = {
      ...demo(`say ${text}`, "run ls -A . $HOME"),
      sandbox: "docker",
      sandboxPermission: boundary,
    };
    const result = await bodyOf(await server.post("/run", { ...body }));
    expect(result, server.log().slice(-2_000)).toMatchObject({
      ok: true,
      receipt: { sandbox: "docker", evidence: { "agent.startedAhead": true } },
    });
  }
  server.process.kill("SIGTERM");
  await server.exit;
});
