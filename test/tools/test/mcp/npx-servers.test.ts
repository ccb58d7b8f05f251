// needs: jail
import { definePlugin } from "@ambit/core/plugin";
import acp from "@ambit/harness-acp";
import mcpClient from "@ambit/mcp-client";
import mcp from "@ambit/mcp-http";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";
import { openAmbit, takeEnvironment } from "ambit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking } from "../support/agents.js";
import { LiveRun } from "../support/live-run.js";
import { type PackageRegistry, startPackageRegistry } from "../support/package-registry.js";

/** Made-up names, which all resolve to this host. */
const onThisHost = definePlugin({
  name: "sandbox-with-names",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    registrar.add("sandbox", new LocalSandbox(config, () => Promise.resolve(["127.0.0.1"])));
  },
});

let runner: Awaited<ReturnType<typeof openAmbit>>["runner"];
let packages: PackageRegistry;
beforeAll(async () => {
  packages = await startPackageRegistry();
  const sandbox = { use: onThisHost, config: { readOnlyMounts: [packages.prefix] } };
  const configuration = { plugins: [sandbox, { use: acp, config: { profiles: ["demo"] } }, mcp, mcpClient] };
  ({ runner } = await openAmbit({ environment: takeEnvironment({}), configuration, logLevel: "silent" }));
});
afterAll(async () => {
  await runner.drain(0);
  await packages.close();
});

async function run(network: object | string, filesystem = "workspace", env: object = {}) {
  const url = `http://packages.test:${packages.port}/`;
  const args = ["-y", packages.packageName];
  const connection = { type: "stdio", command: "npx", args, env: { npm_config_registry: url, ...env } };
  const live = await LiveRun.begin(runner, {
    harness: "demo",
    ...asking('call npx/echo {"a":1}'),
    mcpServers: [{ name: "npx", connection, policy: { permission: "allow" } }],
    sandboxPermission: { network, filesystem },
  });
  return { live, result: await live.result };
}

// npm's cache is in HOME, which is the server's own scratch: the workspace needn't be writable.
it.each(["workspace", "readonly"])(
  "npx downloads a server from a listed registry and starts it: %s",
  { timeout: 60_000 },
  async (filesystem) => {
    const before = packages.tarballs();
    const { live, result } = await run(
      { allowlist: [`packages.test:${packages.port}`, `127.0.0.1/32:${packages.port}`] },
      filesystem,
    );
    expect(result).toMatchObject({ ok: true, receipt: { confinement: "confined" } });
    expect(live.resultsOf("echo")).toMatchObject([{ output: 'local echo {"a":1}' }]);
    expect(packages.tarballs() - before).toBe(1);
  },
);

it("npx can't download it from an unlisted registry, and the run reports the boundary's refusal", {
  timeout: 60_000,
}, async () => {
  const before = packages.requests();
  const { live, result } = await run({ allowlist: ["elsewhere.test:443"] });
  expect(result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
  expect(result.error).toMatch(
    /'npx' ended before it answered \(exit code \d+\).*It wrote:[\s\S]*Refused by Ambit's boundary/,
  );
  expect(live.of("boundary_decision")).toContainEqual(
    expect.objectContaining({ target: `packages.test:${packages.port}`, allowed: false }),
  );
  expect(packages.requests()).toBe(before);
});

it("npx needs no network for an installed server", { timeout: 60_000 }, async () => {
  const before = packages.requests();
  const { live, result } = await run("off", "readonly", { npm_config_prefix: packages.prefix });
  expect(result).toMatchObject({ ok: true });
  expect(live.resultsOf("echo")).toMatchObject([{ output: 'local echo {"a":1}' }]);
  expect(packages.requests()).toBe(before);
});
