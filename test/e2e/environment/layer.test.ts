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

describe.skipIf(unavailableReason() !== undefined)(
  "an environment as a layer of an engine",
  {
    timeout: 180_000,
  },
  () => {
    it("is what later sandboxes of its project begin with, and no run changes it", async () => {
      const server = await serveFromContainers({ workspace: { preparedFolder: await emptyFolder() } });
      const built = await run(server);
      expect(built.environment).toMatchObject({ from: "built", kept: true });
      expect(built.layer).toBeUndefined();
      const runs = [await run(server), await run(server)];
      for (const { printed, layer, environment, sources } of runs) {
        expect(printed).toBe(built.printed);
        expect(printed).toContain("preparednote");
        expect(layer).toMatch(/^[0-9a-f]{12}$/);
        expect(environment).toEqual({ ...built.environment, from: "cache" });
        expect(sources).toEqual(built.sources);
      }

      // The environment of another project is another one, although it is the same.
      const other = await run(server, { projectId: "two" });
      expect(other).toMatchObject({ environment: { from: "built" }, layer: undefined });
      expect((await run(server, { projectId: "two" })).layer).not.toBe(runs[0]?.layer);

      // A workspace with a limit is in memory: it gets a copy.
      const limited = { sandboxPermission: { ...closed, resources: { diskMb: 50 } } };
      await run(server, limited);
      expect(await run(server, limited)).toMatchObject({ layer: undefined, environment: { from: "cache" } });

      // Somebody removed all of them.
      const layers = docker("volume", "ls", "--quiet", "--filter", "label=ambit=layer");
      for (const name of layers.trim().split(/\s+/)) docker("volume", "rm", name);
      const again = await run(server);
      expect(again).toMatchObject({ printed: built.printed, layer: runs[0]?.layer });
      // A session has its files already.
      const named = await run(server, { sessionId: "kept" });
      expect(named.layer).toBe(runs[0]?.layer);
      expect((await run(server, { sessionId: "kept" })).printed).toContain("changed");
    });
  },
);

describe.skipIf(noDaytona() !== undefined)(
  "an environment as a snapshot of Daytona",
  {
    timeout: 180_000,
  },
  () => {
    it("is what later sandboxes of its project begin with, and no run changes it", async () => {
      const server = await serveFromDaytona({ workspace: { preparedFolder: await emptyFolder() } });
      const daytona = { sandbox: "daytona", sandboxPermission: { network: "off", filesystem: "on" } };
      const built = await run(server, daytona);
      expect(built).toMatchObject({ environment: { from: "built", kept: true }, layer: undefined });
      const runs = [await run(server, daytona), await run(server, daytona)];
      for (const { printed, layer, environment, sources } of runs) {
        expect(printed).toBe(built.printed);
        expect(printed).toContain("preparednote");
        expect(layer).toMatch(/^[0-9a-f]{12}$/);
        expect(environment).toEqual({ ...built.environment, from: "cache" });
        expect(sources).toEqual(built.sources);
      }
      const other = await run(server, { ...daytona, projectId: "two" });
      expect(other).toMatchObject({ environment: { from: "built" }, layer: undefined });
      expect((await run(server, { ...daytona, projectId: "two" })).layer).not.toBe(runs[0]?.layer);
    });
  },
);
