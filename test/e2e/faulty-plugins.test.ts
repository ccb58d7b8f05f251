import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer as createPage, type ServerResponse } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ambit, bodyOf, demo, emptyFolder, serve } from "./support/ambit.js";

const use = fileURLToPath(new URL("./support/faulty-plugin.mjs", import.meta.url));

/** What no plugin here may reach. */
const listener = createServer((socket) => socket.destroy());
let connections = 0;
listener.on("connection", () => {
  connections += 1;
});
beforeAll(async () => {
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
});
afterAll(() => listener.close());

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function configurationWith(fault: string, first = false): Promise<string> {
  const port = portOf(listener);
  const file = join(await emptyFolder(), "ambit.config.json");
  const faulty = { use, config: { fault, port } };
  const without = first ? ["@ambit/mcp-http"] : [];
  await writeFile(file, JSON.stringify({ extends: "defaults", plugins: [faulty], without }));
  return file;
}

const tool = { customTools: [{ name: "act", kind: "faulty", permission: "allow" }] };
const off = { sandboxPermission: { network: "off" } };
const acts = demo("call act {}", "say done");

async function run(fault: string, more: object, command: readonly string[] = ["run"]) {
  const config = await configurationWith(fault, fault === "no server");
  const { stdout, stderr } = await ambit(["--config", config, ...command, "-"], {
    input: { ...acts, ...more },
  });
  const result = JSON.parse(stdout === "" ? "{}" : stdout);
  return { result, stderr };
}

describe("a plugin that returns what none may", () => {
  it.each<[fault: string, more: object, method: string, message: string]>([
    ["an unknown domain", { ...off, ...tool }, "touches", '[0] must be one of "network"'],
    ["a misspelt gap", { ...off, ...tool }, "gaps", "[0].capability must be one of"],
    ["an empty gap", { ...off, ...tool }, "gaps", "[0].reason is required"],
    ["no gaps", { ...off, ...tool }, "gaps", "nothing"],
    ["a promise of gaps", { ...off, ...tool }, "gaps", "a promise"],
    ["findings that are no list", { ...off, ...tool }, "probe", "must be a list"],
    ["dependencies that are no texts", {}, "dependsOn", "[0] must be a string"],
    ["a sandbox's misspelt gap", { ...off, sandbox: "faulty" }, "gaps", "[0].capability must be one of"],
    ["no sandbox", { sandbox: "faulty" }, "open", "workspace is required"],
    ["no server", { customTools: [{ name: "ask", kind: "client" }] }, "publish", "url is required"],
    ["a translation that is none", {}, "translate", "nothing"],
  ])("%s: refuses the run by its name, before it acts", async (fault, more, method, message) => {
    const { result } = await run(fault, more);
    expect(result).toMatchObject({ ok: false, failure: { code: "plugin_broke_contract" } });
    expect(result.error).toContain(`'faulty' of the plugin 'faulty' (${use})`);
    expect(result.error).toContain(`${method}()`);
    expect(result.error).toContain(message);
    expect(connections).toBe(0);
  });

  it("refuses its plan in the same way", async () => {
    const { result } = await run("a misspelt gap", { ...off, ...tool }, ["plan", "--json"]);
    expect(result).toMatchObject({ ok: false, failure: { code: "plugin_broke_contract" } });
    expect(result.error).toContain("gaps()");
  });
});

describe("a plugin that leaves an error unhandled", () => {
  it.each<[fault: string, more: object]>([
    ["a missing program", tool],
    ["an unread rejection", tool],
    ["a sandbox's missing program", { sandbox: "faulty" }],
  ])("%s: ends its run by its name", async (fault, more) => {
    const { result, stderr } = await run(fault, more);
    expect(result).toMatchObject({ ok: false, failure: { code: "plugin_broke_contract" } });
    expect(result.error).toMatch(/'faulty' of the plugin 'faulty' \(.*\) left an error unhandled/);
    expect(stderr).toMatch(/nonexistent\/program ENOENT|this rejection has no reader/);
  });

  it("says of its probe that it failed, and why", async () => {
    const { result } = await run("a probe's missing program", { ...off, sandbox: "faulty" });
    expect(result.failure).toMatchObject({ code: "boundary_refused" });
    expect(result.error).toContain("its probe failed (spawn /nonexistent/program ENOENT)");
  });

  it("is named where it only observes, and the run goes on", async () => {
    const config = await configurationWith("an observer's unread rejection");
    const { stdout, stderr } = await ambit(["--config", config, "run", "-"], { input: demo("say done") });
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, output: "done" });
    expect(stderr).toContain("Observer 'faulty' of the plugin 'faulty'");
  });

  it("ends only its own run of a server", async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const page = createPage((_request, response) => held.resolve(response)).listen(0, "127.0.0.1");
    onTestFinished(() => void page.close());
    await once(page, "listening");
    const server = await serve({}, ["--config", await configurationWith("a missing program")]);
    const other = server.post("/run", demo(`fetch http://127.0.0.1:${portOf(page)}/`, "say still here"));
    const response = await held.promise;
    const faulty = await bodyOf(await server.post("/run", { ...acts, ...tool }));
    expect(faulty).toMatchObject({ ok: false, failure: { code: "plugin_broke_contract" } });
    response.end("the page");
    expect(await bodyOf(await other)).toMatchObject({ ok: true, output: "still here" });
  });
});
