// needs: jail
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunResult } from "@ambit/core";
import { execa } from "execa";
import { beforeAll, describe, expect, it } from "vitest";
import { ambit, demo } from "../support/ambit.js";
import { installPacked } from "../support/outside.js";
import { pageJson, toolsOf, writePageCode } from "../support/page-code.js";

const page = "docs/write-a-plugin.md";
/** Each plugin of the page, with its number of files. */
const plugins = {
  "ambit-clock": 2,
  "ambit-quote": 5,
  "ambit-robin": 2,
  "ambit-delivery": 2,
  "ambit-source": 2,
};
const observer = "ambit-audit";
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-page-"));
  const [manifest, tsconfig] = await pageJson(page);
  await installPacked(
    folder,
    [
      "core",
      "packages/attacks",
      "packages/backend-kit",
      "packages/egress",
      "test/kit",
      "plugins/sandbox-local",
      "plugins/harness-acp",
    ],
    toolsOf(manifest),
  );
  for (const [name, files] of Object.entries({ ...plugins, [observer]: 1 })) {
    const from = name === observer ? "docs/observability.md" : page;
    expect(await writePageCode(from, name, folder), name).toBe(files);
    await writeFile(join(folder, name, "package.json"), JSON.stringify({ ...Object(manifest), name }));
    await writeFile(join(folder, name, "tsconfig.json"), JSON.stringify(tsconfig));
    await symlink(join("..", name), join(folder, "node_modules", name));
  }
  await compile([...Object.keys(plugins), observer]);
  return () => rm(folder, { recursive: true, force: true });
}, 120_000);

async function compile(names: readonly string[]): Promise<void> {
  const compiler = join(folder, "node_modules/typescript/bin/tsc");
  await execa(process.execPath, [compiler, "-b", ...names], { cwd: folder });
}

/** The service of one of the plugins. */
const service = createServer((request, response) => response.end(`4.20 for ${request.url}`));
let port = 0;
beforeAll(async () => {
  await once(service.listen(0, "127.0.0.1"), "listening");
  ({ port } = service.address() as AddressInfo);
  return () => void service.close();
});

/** With the same configuration for all runs, so that they share the evidence of this host. */
async function configure(): Promise<void> {
  const quote = { use: "ambit-quote", config: { service: `http://127.0.0.1:${port}` } };
  const plugins = [local, harnesses, "@ambit/mcp-http", "ambit-source", quote];
  await writeFile(join(folder, "ambit.config.json"), JSON.stringify({ plugins }));
}

async function run(input: unknown): Promise<RunResult> {
  const { code, stdout, stderr } = await ambit(["run", "-"], { cwd: folder, input });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

const outputsOf = ({ events }: RunResult) =>
  events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));

const inputSchema = { type: "object" };
const local = "@ambit/sandbox-local";
const harnesses = "@ambit/harness-acp";

describe("the page 'Write a plugin'", () => {
  it("has each plugin pass the kit", async () => {
    const argv = [
      join(folder, "node_modules/vitest/vitest.mjs"),
      "run",
      "--reporter=verbose",
      "--root",
      folder,
    ];
    const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined };
    const { stdout } = await execa(process.execPath, argv, { cwd: folder, env });
    expect(stdout).toMatch(/Tests +\d+ passed/);
    expect(stdout).not.toMatch(/Tests .*(skipped|failed)/);
    for (const name of Object.keys(plugins)) expect(stdout).toContain(`✓ ${name}/`);
  }, 120_000);

  it("begins with a file that a configuration names", async () => {
    expect(await writePageCode(page, "first", folder)).toBe(2);
    const input = {
      ...demo("call now {}"),
      customTools: [{ name: "now", kind: "clock", permission: "allow" }],
    };
    const { code, stdout, stderr } = await ambit(["run", "-"], { cwd: join(folder, "first"), input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(outputsOf(JSON.parse(stdout))).toEqual([expect.stringMatching(/\d:\d\d:\d\d/)]);
  });

  it("has an executor, a harness and a delivery that work together, and an observer", async () => {
    const file = join(folder, "audit.ndjson");
    const audit = { use: observer, config: { file } };
    const plugins = [local, "ambit-robin", "ambit-delivery", "ambit-clock", audit];
    await writeFile(join(folder, "ambit.config.json"), JSON.stringify({ plugins }));
    const result = await run({
      ...demo("call now {}"),
      harness: "robin",
      customTools: [{ name: "now", kind: "clock", permission: "allow", inputSchema }],
    });
    expect(outputsOf(result)).toEqual([expect.stringMatching(/\d\d:\d\d:\d\d/)]);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({
      harness: "robin",
      calls: ["now"],
      ok: true,
    });
  });

  it("has a tool source that starts a server inside a boundary", async () => {
    const python = `import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    results = {"initialize": {}, "tools/list": {"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}}
    if ask["method"] == "tools/call":
        text = ask["params"]["arguments"]["text"].upper()
        results["tools/call"] = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": results[ask["method"]]}), flush=True)
`;
    const connection = { type: "stdio", command: "python3", args: ["-c", python] };
    await configure();
    const result = await run({
      ...demo('call shout {"text": "hello"}'),
      mcpServers: [{ name: "voice", connection, policy: { permission: "allow" } }],
      sandboxPermission: { network: "off" },
    });
    expect(outputsOf(result)).toEqual(["HELLO"]);
  });

  it("has an executor that a boundary allows if its service is listed, and refuses otherwise", async () => {
    await configure();
    const input = {
      ...demo('call price {"of": "tea"}'),
      customTools: [{ name: "price", kind: "quote", permission: "allow", inputSchema }],
    };
    const sandboxPermission = { network: { allowlist: [`127.0.0.1:${port}`] } };
    const result = await run({ ...input, sandboxPermission });
    expect(outputsOf(result)).toEqual(["4.20 for /?of=tea"]);
    const off = { ...input, sandboxPermission: { network: "off" } };
    const { stdout } = await ambit(["plan", "--json", "-"], { cwd: folder, input: off });
    expect(JSON.parse(stdout).failure.gaps).toContainEqual(
      expect.objectContaining({ actor: "quote", capability: "network.deny" }),
    );
  });
});
