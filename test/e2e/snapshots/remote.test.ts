import { unavailableReason as whyNoDaytona } from "@ambit/daytona-loopback";
import { unavailableReason as whyNoRuntime } from "@ambit/docker-engine";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { expect, it } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import { serveFromContainers, serveFromDaytona, serveFromPods } from "../support/backends/serve-from.js";

const closed = { network: "off", filesystem: "workspace" };

/** The fork's sandbox has the paths of the other: what knows its own still works. */
async function expectFork(server: Server, sandbox: string, sandboxPermission: object = closed) {
  const run = async (request: object) => {
    const text = await (await server.post("/run", { sandbox, sandboxPermission, ...request })).text();
    return JSON.parse(text);
  };
  const script = demo("write app.txt one", 'run ln -s "$PWD/app.txt" ~/whole', "say begun");
  const begun = await run({ ...script, sessionId: "original" });
  expect(begun, server.log()).toMatchObject({ ok: true, output: "begun" });
  const response = await server.post("/sessions/original/snapshot", "");
  const { id, sandbox: named, sha256 } = JSON.parse(await response.text());
  expect([response.status, named]).toEqual([201, sandbox]);
  const fork = await run({ ...demo("run cat ~/whole", "recall"), fork: { snapshot: id } });
  expect(fork, server.log()).toMatchObject({
    ok: true,
    receipt: { fork: { snapshot: id, sha256 }, session: { history: "loaded" } },
  });
  expect(JSON.stringify(fork.events)).toContain("one");
  // Without a snapshot in between, while the first one lives.
  const direct = await run({ ...demo("run cat ~/whole", "recall"), fork: { session: "original" } });
  expect(direct, server.log()).toMatchObject({ ok: true, receipt: { fork: { session: "original" } } });
  expect(JSON.stringify(direct.events)).toContain("one");
  return { id, run };
}

async function expectRefusal({ id, run }: Awaited<ReturnType<typeof expectFork>>, sandbox: string) {
  const elsewhere = await run({
    ...demo("say x"),
    sandbox: "local",
    sandboxPermission: closed,
    fork: { snapshot: id },
  });
  expect(elsewhere.failure).toMatchObject({ code: "snapshot_failed" });
  expect(elsewhere.error).toContain(`sandbox: "${sandbox}"`);
}

const whyBrief =
  process.env.AMBIT_SOAK === undefined ? "this takes minutes on a busy machine: set AMBIT_SOAK=1" : undefined;

it("a session in a container is forked into another; not on another backend", {
  timeout: 240_000,
}, async (context) => {
  const missing = whyBrief ?? whyNoRuntime("runc");
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await expectRefusal(await expectFork(await serveFromContainers({}), "runc"), "runc");
});

it("a session in a pod is forked into another", { timeout: 240_000 }, async (context) => {
  const missing = whyBrief ?? (await ownUnavailableReason());
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await expectFork(await serveFromPods({}), "kubernetes");
});

it("a session on Daytona is forked into another; not on another backend", {
  timeout: 240_000,
}, async (context) => {
  const missing = whyBrief ?? whyNoDaytona();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const forked = await expectFork(await serveFromDaytona({}), "daytona", { network: "off" });
  await expectRefusal(forked, "daytona");
});
