import { execFileSync } from "node:child_process";
import { unavailableReason as noDaytona } from "@ambit/daytona-loopback";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { describe, expect, it } from "vitest";
import { demo, emptyFolder, type Server } from "../support/ambit.js";
import { serveFromContainers, serveFromDaytona } from "../support/backends/serve-from.js";

const docker = (...argv: readonly string[]) =>
  String(execFileSync("docker", ["--host", `unix://${dockerEngine().socket}`, ...argv]));
const setup = [
  "mkdir packages; printf prepared > packages/one; ln -s packages/one link; printf note > ~/note",
];
const closed = { network: "off", filesystem: "workspace" };

async function run(server: Server, more: object = {}) {
  const body = {
    ...demo("run cat link ~/note; printf changed > packages/one; ls -A", "say done"),
    sandbox: "runc",
    sandboxPermission: closed,
    projectId: "one",
    workspace: { sources: [{ type: "files", files: [{ path: "source.txt", content: "source" }] }] },
    environment: { setup },
    ...more,
  };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
  const { evidence, environment, sources } = result.receipt;
  const layer = evidence["docker.layer"] ?? evidence["daytona.layer"];
  return { printed: String(ended?.output), layer, environment, sources };
}

/** Runs the same request three times: the first one prepares what the others begin with. @returns the layer */
async function expectLayer(server: Server, request: object): Promise<{ layer: unknown; printed: string }> {
  const built = await run(server, request);
  expect(built).toMatchObject({ environment: { from: "built", kept: true }, layer: undefined });
  const runs = [await run(server, request), await run(server, request)];
  for (const { printed, layer, environment, sources } of runs) {
    expect(printed).toBe(built.printed);
    expect(printed).toContain("preparednote");
    expect(layer).toMatch(/^[0-9a-f]{12}$/);
    expect(environment).toEqual({ ...built.environment, from: "cache" });
    expect(sources).toEqual(built.sources);
  }
  // The environment of another project is another one, although it is the same.
  const other = { ...request, projectId: "two" };
  expect(await run(server, other)).toMatchObject({ environment: { from: "built" }, layer: undefined });
  expect((await run(server, other)).layer).not.toBe(runs[0]?.layer);
  return { layer: runs[0]?.layer, printed: built.printed };
}

const begins = "which later sandboxes of its project begin with, and no run changes";
const isolated = async () => ({ workspace: { preparedFolder: await emptyFolder() } });

describe("an environment that a platform keeps", { timeout: 400_000 }, () => {
  it(`as volumes of an engine, ${begins}`, async (context) => {
    const missing = unavailableReason();
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const server = await serveFromContainers(await isolated());
    const { layer, printed } = await expectLayer(server, {});

    // A workspace with a limit is in memory: it gets a copy.
    const limited = { sandboxPermission: { ...closed, resources: { diskMb: 50 } } };
    await run(server, limited);
    expect(await run(server, limited)).toMatchObject({ layer: undefined, environment: { from: "cache" } });

    // Somebody removed all of them.
    const layers = docker("volume", "ls", "--quiet", "--filter", "label=ambit=layer");
    for (const name of layers.trim().split(/\s+/)) docker("volume", "rm", name);
    expect(await run(server)).toMatchObject({ printed, layer });
    // A session has its files already.
    const named = await run(server, { sessionId: "kept" });
    expect(named.layer).toBe(layer);
    expect((await run(server, { sessionId: "kept" })).printed).toContain("changed");
  });

  it(`as a snapshot of Daytona, ${begins}`, async (context) => {
    const missing = noDaytona();
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const server = await serveFromDaytona(await isolated());
    const sandboxPermission = { network: "off", filesystem: "on" };
    await expectLayer(server, { sandbox: "daytona", sandboxPermission });
  });
});
