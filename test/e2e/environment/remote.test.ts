import { unavailableReason as whyNoDaytona } from "@ambit/daytona-loopback";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { describe, expect, it } from "vitest";
import { demo, emptyFolder, type Server } from "../support/ambit.js";
import { serveFromDaytona, serveFromPods } from "../support/backends/serve-from.js";

/** A program that knows its own path, as those of Python's virtual environments do, and a link to it in the home. */
const setup = [
  "mkdir bin; printf 'from-the-setup' > made",
  `printf '#!/bin/sh\\nexec cat %s/made\\n' "$PWD" > bin/tool; chmod 700 bin/tool; ln -s "$PWD/bin/tool" ~/tool`,
];

interface Event {
  readonly type: string;
  readonly name?: string;
  readonly output?: unknown;
}

/** The agent, in a session of its own, calls what was prepared by its whole path. */
async function run(server: Server, request: object, sessionId: string) {
  const body = {
    ...demo("run ~/tool; echo; readlink ~/tool; pwd; ls -l made", "say done"),
    sessionId,
    environment: { setup, boundary: { network: "off" } },
    ...request,
  };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const events: readonly Event[] = result.events;
  const printed = String(events.find(({ type }) => type === "tool_result")?.output);
  const [content, link, folder] = printed.split("\n");
  expect(content).toBe("from-the-setup");
  expect(link).toBe(`${folder}/bin/tool`);
  return {
    folder,
    id: result.receipt.evidence,
    prepared: events.filter(({ name }) => name === "setup").length,
    environment: result.receipt.environment,
  };
}

/** A first run prepares it; another session begins with what was kept, in a sandbox of its own. */
async function expectPrepared(server: Server, request: object, identity: string): Promise<void> {
  const cold = await run(server, request, "first");
  expect(cold.environment).toMatchObject({ from: "built", kept: true });
  expect(cold.prepared).toBeGreaterThan(0);
  const warm = await run(server, request, "second");
  expect(warm.environment).toEqual({ ...cold.environment, from: "cache" });
  expect(warm.prepared).toBe(0);
  expect(warm.folder).toBe(cold.folder);
  expect(warm.id[identity]).not.toBe(cold.id[identity]);
}

const whyBrief =
  process.env.AMBIT_SOAK === undefined ? "one shape is enough on every machine: set AMBIT_SOAK=1" : undefined;
const kept = async () => ({ workspace: { preparedFolder: await emptyFolder() } });

describe("an environment is prepared once, and works in another session's sandbox", {
  timeout: 300_000,
}, () => {
  it.for([
    ["with a user namespace", "require", "off", undefined],
    // Without one, only policies close a network, and this namespace has none that work.
    ["without a user namespace", "off", "on", whyBrief],
  ] as const)("a pod %s", async ([_shape, hostUsers, network, skipped], context) => {
    const missing = skipped ?? (await ownUnavailableReason());
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const server = await serveFromPods(await kept(), { hostUsers });
    const sandboxPermission = { network, filesystem: "workspace" };
    const environment = { setup, boundary: { network } };
    await expectPrepared(server, { sandbox: "kubernetes", sandboxPermission, environment }, "kubernetes.pod");
  });

  it("Daytona", async (context) => {
    const missing = whyNoDaytona();
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const server = await serveFromDaytona(await kept());
    const request = { sandbox: "daytona", sandboxPermission: { network: "off" } };
    await expectPrepared(server, request, "daytona.sandbox");
    // On this host, such a boundary would give the commands the host's files.
    const body = { ...demo("say hi"), ...request, sandbox: "local", environment: { setup } };
    const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
    expect(failure.gaps).toContainEqual(
      expect.objectContaining({
        actor: "local",
        subject: "environment",
        capability: "filesystem.workspace-only",
      }),
    );
  });
});
