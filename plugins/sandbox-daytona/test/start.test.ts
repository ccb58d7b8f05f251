import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";

const plugin = new URL("../dist/index.js", import.meta.url).href;
/** Makes the process fail when the SDK is loaded. */
const hook = `
    import { registerHooks } from "node:module";
    registerHooks({
      resolve(name, context, next) {
        if (name.startsWith("@daytona/")) throw new Error("the SDK is being loaded");
        return next(name, context);
      },
    });`;

/** Loads the plugin as a server does, then runs some code with `backend`, and `hidden`: what the log may not show. */
function started(code: string, config: object = {}, variables: Readonly<Record<string, string>> = {}) {
  const program = `${hook}
    const { default: plugin, configSchema } = await import(${JSON.stringify(plugin)});
    const boundary = { network: { mode: "off", rules: [] }, filesystem: { mode: "on", readable: [], writable: [], denied: [] }, resources: {}, secrets: "visible", enforcement: "strict" };
    let backend;
    const hidden = [];
    const registrar = { add: (_kind, actor) => { backend = actor; }, secret: (value) => hidden.push(value) };
    plugin.register(registrar, configSchema.parse(${JSON.stringify(config)}));
    ${code}`;
  return spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { PATH: process.env.PATH ?? "", ...variables },
  });
}

describe("a server with this plugin", () => {
  it("starts and plans without the platform's SDK, and without a key", () => {
    const { stdout, stderr, status } = started(`
      backend.gaps(boundary); backend.touches(); backend.hides({ name: "K", value: "v", hosts: ["a.example"] }, boundary);
      const findings = await backend.probe(new AbortController().signal);
      console.log(findings.map(({ proven }) => proven).includes(true), backend.claims.length);`);
    expect({ stdout, stderr, status }).toEqual({ stdout: "false 8\n", stderr: "", status: 0 });
  });

  it("hides the key of its variable in the log", () => {
    const { stdout } = started("console.log(hidden[0])", { apiKeyVariable: "OUR_KEY" }, { OUR_KEY: "key-1" });
    expect(stdout).toBe("key-1\n");
  });

  it("loads it with the first sandbox (the control)", async () => {
    const dataFolder = await mkdtemp(join(tmpdir(), "ambit-start-"));
    onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
    const { stderr, status } = started(
      `const log = { debug() {}, info() {}, warn() {}, error() {} };
      const spec = { id: "x", boundary, required: [], requiredPaths: [], onDecision() {}, log };
      await backend.open(spec, { signal: new AbortController().signal, defer() {} });`,
      { apiKey: "key", dataFolder },
    );
    expect(stderr).toContain("the SDK is being loaded");
    expect(status).toBe(1);
  });
});
