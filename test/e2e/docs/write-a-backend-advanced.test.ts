import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { RunResult } from "@ambit/core";
import type { SandboxBackend } from "@ambit/core/plugin";
import { beforeAll, describe, expect, it, type TestContext } from "vitest";
import { ambit, demo } from "../support/ambit.js";
import { callbackServer } from "../support/callback-server.js";
import { installPacked } from "../support/outside.js";
import { writePageCode } from "../support/page-code.js";
import { running } from "../support/processes.js";
import { passKit } from "../support/run-kit.js";

/** What the page's backend enforces if it may create namespaces. */
const claims = ["network.deny", "process.contained", "environment.named-only", "environment.per-tool"];
const mustProve = (process.env.AMBIT_MUST_PROVE ?? "").split(",");

const ofThisBackend = (capability: string) =>
  claims.includes(capability) ? `namespaces:${capability}` : capability;

/** Skips a test if the page's backend can't prove its claims here; fails where the machine must be able to. */
async function needProof(context: TestContext, folder: string): Promise<void> {
  const path = pathToFileURL(join(folder, "ambit-namespaces/make-backend.js")).href;
  const { default: makeBackend }: { default: () => SandboxBackend } = await import(path);
  const findings = await makeBackend().probe(AbortSignal.timeout(30_000));
  for (const finding of findings) {
    if (finding.proven) continue;
    if (mustProve.includes(finding.capability)) expect.fail(`${finding.capability}: ${finding.reason}`);
    context.skip(`host: ${finding.capability}: ${finding.reason}: ${finding.fix}`);
  }
  expect(findings.map(({ capability }) => capability)).toEqual(claims);
}

describe("the page 'Write a backend: advanced'", { retry: 0 }, () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-page-"));
    await installPacked(folder, ["core", "packages/bridge", "test/kit"], ["vitest"]);
    const written = await writePageCode("docs/write-a-backend-advanced.md", "ambit-namespaces", folder);
    expect(written).toBe(7);
    await writeFile(
      join(folder, "ambit-namespaces/package.json"),
      JSON.stringify({ name: "ambit-namespaces", version: "1.0.0", type: "module", exports: "./index.js" }),
    );
    await symlink("../ambit-namespaces", join(folder, "node_modules/ambit-namespaces"));
    return () => rm(folder, { recursive: true, force: true });
  });

  it("has a backend that enforces its claims, and refuses the rest", {
    timeout: 300_000,
  }, async (context) => {
    await needProof(context, folder);
    const env = { AMBIT_MUST_PROVE: mustProve.map(ofThisBackend).join(",") };
    expect(await passKit(folder, "ambit-namespaces", { env })).toBeGreaterThan(100);
  });

  it("has a backend that runs an agent with every kind of tool", async (context) => {
    await needProof(context, folder);
    const platform = await callbackServer(() => ({ sky: "rain" }));
    const plugins = ["ambit-namespaces", "@ambit/harness-acp", "@ambit/mcp-http"];
    const executors = ["@ambit/executor-code", "@ambit/executor-callback", "@ambit/executor-client"];
    await writeFile(
      join(folder, "ambit.config.json"),
      JSON.stringify({ plugins: [...plugins, ...executors] }),
    );
    const inputSchema = { type: "object" };
    const input = {
      ...demo(
        "write note.txt kept",
        'call add {"a": 2, "b": 40}',
        "call where {}",
        'call weather {"city": "Bern"}',
        `fetch ${platform.endpoint}`,
        'call pick {"of": 2}',
      ),
      customTools: [
        {
          name: "add",
          kind: "code",
          runtime: "node",
          code: "function main({ a, b }) { return { sum: a + b, note: require('node:fs').readFileSync('note.txt', 'utf8') }; }",
          permission: "allow",
          inputSchema,
        },
        {
          name: "where",
          kind: "code",
          runtime: "python",
          code: "import os\ndef main():\n    return {'root': sorted(os.listdir('/')), 'user': os.getuid()}",
          permission: "allow",
          inputSchema,
        },
        { name: "weather", callRef: "weather", permission: "allow", inputSchema },
        { name: "pick", kind: "client", permission: "allow", inputSchema },
      ],
      toolCallback: { endpoint: platform.endpoint },
      sandboxPermission: { network: "off", enforcement: "best_effort" },
    };
    const { code, stdout, stderr } = await ambit(["run", "-"], { cwd: folder, input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const result: RunResult = JSON.parse(stdout);
    expect(result.stopReason).toBe("paused");
    const outputs = result.events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));
    const [, sum, seen, weather, fetched] = outputs;
    expect(sum).toBe('{"sum":42,"note":"kept"}');
    // In the image, and with a user of its own.
    expect(seen).toMatch(/"root":\["bin","dev","etc".*"user":6100\d/);
    expect(weather).toBe('{"sky":"rain"}');
    // What the runner reached isn't reached from inside.
    expect(fetched).toMatch(/^fetch failed/);
    expect(platform.calls).toHaveLength(1);
    expect(result.receipt?.guarantees.map(({ capability, by }) => `${by} ${capability}`)).toEqual([
      "namespaces network.deny",
      "namespaces process.contained",
      "namespaces environment.named-only",
    ]);
    expect(running(`/tmp/ambit/${result.sessionId}`)).toEqual([]);
  });
});
