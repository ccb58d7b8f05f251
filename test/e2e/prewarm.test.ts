// needs: pgrep
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { bodyOf, type Server, startServer } from "./support/ambit.js";
import { prewarmed } from "./support/configurations.js";
import { descendantsOf, running } from "./support/processes.js";

const patience = { timeout: 30_000 };
const sleep = `${700_000 + process.pid}`;

/** What the agents may connect to, on this machine. */
let asked = 0;
const target = createServer((_request, response) => {
  asked += 1;
  response.end("reached");
});
let allowed = "";
let server: Server;

const start = () =>
  startServer(
    { PREWARM_TARGET: `http://${allowed}/`, PREWARM_SLEEP: sleep, AMBIT_LOG_LEVEL: "debug" },
    prewarmed,
  );

const metric = async (name: string) => {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith(name));
};
const waiting = async () => Number((await metric("ambit_prewarm_waiting"))[0]?.split(" ")[1] ?? 0);

const request = (harness: string, more: object = {}) => ({
  harness,
  permissions: { default: "allow" },
  sandboxPermission: { network: { mode: "allowlist", allowlist: [allowed] }, filesystem: "workspace" },
  messages: [{ role: "user", content: "go" }],
  ...more,
});

async function run(harness: string, more: object = {}) {
  const result = await bodyOf(await server.post("/run", request(harness, more)));
  expect(result, JSON.stringify(result)).toMatchObject({ ok: true });
  const said: { done: string; seen: string[]; known: string[] } = JSON.parse(result.output ?? "");
  return { said, isAhead: result.receipt?.evidence["agent.startedAhead"] === true, result };
}

beforeAll(async () => {
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const address = target.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  allowed = `127.0.0.1:${address.port}`;
  server = await start();
  await vi.waitFor(async () => expect(await waiting()).toBe(9), 90_000);
}, 120_000);
afterAll(() => {
  server.process.kill("SIGKILL");
  target.close();
});

describe("an agent that was started ahead", { retry: 0, timeout: 120_000 }, () => {
  it("is given to a run that would start it the same way, and leaves nothing to the next", async () => {
    const first = await run("nothing");
    expect(first.isAhead).toBe(true);
    expect(first.said.seen).toEqual([]);
    const others = async () => (await metric("ambit_prewarm_waiting"))[0];
    await expect.poll(others, patience).toBe("ambit_prewarm_waiting 9");
    const second = await run("nothing", { messages: [{ role: "user", content: "of another caller" }] });
    expect(second.isAhead).toBe(true);
    expect(second.said.seen).toEqual([]);
    expect(second.said.known).toEqual(first.said.known);
    expect(second.result.receipt?.evidence).toMatchObject({ "agent.startedAhead": true });
    expect(await metric('ambit_prewarm_claims_total{outcome="hit",harness="nothing"}')).toHaveLength(1);
  });

  it("can't connect to anything before, not even to what the run may reach", async () => {
    expect(asked).toBe(0);
    const { said, isAhead } = await run("dial");
    expect(isAhead).toBe(false);
    // The control: started for the run, it reaches the same address.
    expect(said.done).toBe("200");
    expect(asked).toBe(1);
    expect(server.log()).toContain(`it tried to connect to ${allowed}`);
  });

  it.each([
    ["fork", "it has 2 processes instead of 1", "true"],
    ["fork-detached", "it has 2 processes instead of 1", "left"],
    ["workspace", "planted in its workspace", "written"],
    ["home", "/.profile", "written"],
    ["message-early", "an ACP message that nothing had asked for (session/update)", "true"],
    ["message-late", "an ACP message that nothing had asked for (session/update)", "sent"],
    ["second-response", "an ACP message that nothing had asked for (response)", "sent"],
  ])("is refused if it did this before: %s", async (deed, fault, done) => {
    const { said, isAhead } = await run(deed);
    expect(isAhead).toBe(false);
    // The control: a new one did it too, and its run succeeds.
    expect(said.done).toBe(done);
    expect(server.log()).toContain(fault);
    const claims = await metric("ambit_prewarm_claims_total");
    expect(claims).toContain(`ambit_prewarm_claims_total{outcome="refused",harness="${deed}"} 1`);
  });

  it("is not for a run whose process would be started with other values", async () => {
    // Only an agent that waits can be compared: all are started again first.
    await expect.poll(waiting, { timeout: 90_000 }).toBe(9);
    const { isAhead, said } = await run("nothing", {
      sandboxCredentials: [
        { binding: { kind: "environment", name: "OF_A_CALLER" }, value: "a-callers-secret" },
      ],
    });
    expect(isAhead).toBe(false);
    expect(said.known).toContain("OF_A_CALLER");
    expect(server.log()).toContain("its environment differs in OF_A_CALLER");
    expect(server.log()).not.toContain("a-callers-secret");
  });
});

it("ends with its runner, however that ends", { timeout: 120_000 }, async () => {
  const marks = () => [...running(sleep), ...running("prewarm/agent.mjs")];
  const other = await start();
  const before = server.pid;
  await expect
    .poll(() => descendantsOf(other.pid).some(({ command }) => command.includes("prewarm/agent.mjs")), {
      timeout: 60_000,
    })
    .toBe(true);
  other.process.kill("SIGKILL");
  await other.exit;
  server.process.kill("SIGTERM");
  await server.exit;
  expect(before).toBe(server.pid);
  await expect.poll(() => marks().map(({ command }) => command), patience).toEqual([]);
});
