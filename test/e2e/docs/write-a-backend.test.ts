import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { RunResult } from "@ambit/core";
import type { SandboxBackend } from "@ambit/core/plugin";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { bareControl, runAttacks } from "@ambit/testkit";
import { execa } from "execa";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ambit, demo } from "../support/ambit.js";
import { callbackServer } from "../support/callback-server.js";
import { installPacked } from "../support/outside.js";
import { pageJson, toolsOf, writePageCode } from "../support/page-code.js";
import { passKit } from "../support/run-kit.js";

const name = "ambit-containers";
/** Where the plugin is as the second page leaves it. */
const more = "claiming-more";
let folder = "";

afterEach(() => vi.unstubAllEnvs());

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-page-"));
  const [manifest] = await pageJson("docs/write-a-backend.md");
  await installPacked(
    folder,
    ["core", "packages/attacks", "packages/backend-kit", "packages/bridge", "test/kit"],
    toolsOf(manifest),
  );
  expect(await writePageCode("docs/write-a-backend.md", name, folder)).toBe(4);
  expect(await writePageCode("docs/write-a-backend.md", name, join(folder, more))).toBe(4);
  expect(await writePageCode("docs/claim-more.md", name, join(folder, more))).toBe(3);
  const [, tsconfig] = await pageJson("docs/write-a-plugin.md");
  const compiler = join(folder, "node_modules/typescript/bin/tsc");
  for (const path of [join(folder, name), join(folder, more, name)]) {
    await writeFile(join(path, "package.json"), JSON.stringify(manifest));
    await writeFile(join(path, "tsconfig.json"), JSON.stringify(tsconfig));
    await execa(process.execPath, [compiler, "-p", path]);
  }
  await symlink(join("..", name), join(folder, "node_modules", name));
  return () => rm(folder, { recursive: true, force: true });
}, 120_000);

describe("the page 'Write a backend'", { retry: 0 }, () => {
  it("has a backend that runs an agent with its tools, and keeps it off the network", async (context) => {
    const reason = unavailableReason("runc");
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { socket, image } = dockerEngine();
    await runsAnAgent({ image }, { DOCKER_HOST: `unix://${socket}` });
  });

  it("has a pipe that carries any bytes", async () => {
    const { binaryPipe }: { binaryPipe: (child: ChildProcess) => BinaryPipe } = await import(
      pathToFileURL(join(folder, name, "dist/pipe.js")).href
    );
    const pipe = binaryPipe(spawn("/bin/cat", { stdio: ["pipe", "pipe", "ignore"] }));
    await pipe.write(Buffer.from([0, 10, 255]));
    const { value } = await pipe.output.getReader().read();
    expect([...(value ?? [])]).toEqual([0, 10, 255]);
    await pipe.close();
    await pipe.close();
  });

  it("has a backend whose claims hold under the kit's attacks", { timeout: 180_000 }, async (context) => {
    const reason = unavailableReason("runc");
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { socket, image } = dockerEngine();
    vi.stubEnv("DOCKER_HOST", `unix://${socket}`);
    const page: Page = await import(pathToFileURL(join(folder, name, "dist/index.js")).href);
    const backend = new page.ContainerBackend(page.configSchema.parse({ image }));
    const { capabilities } = await runAttacks(backend, {
      control: bareControl(),
      capabilities: backend.claims,
    });
    const found = capabilities.map(({ capability, assurance }) => `${assurance} ${capability}`);
    expect(found, JSON.stringify(capabilities)).toEqual([
      "proven network.deny",
      "proven process.contained",
      "proven environment.named-only",
    ]);
  });
});

/** The tests of what the page adds; those of every sandbox and of the first three claims are attacked above. All take three minutes. */
const added =
  "describes itself|platform's program|(filesystem\\.[a-z-]+|environment\\.per-tool|resources\\.[a-z]+): ";

describe("the page 'From three claims to eleven'", { retry: 0 }, () => {
  it("has a backend that passes the kit with eleven claims", { timeout: 600_000 }, async (context) => {
    const reason = unavailableReason("runc");
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { socket, image } = dockerEngine();
    const env = { DOCKER_HOST: `unix://${socket}`, CONTAINERS_IMAGE: image };
    vi.stubEnv("DOCKER_HOST", env.DOCKER_HOST);
    const page: Page = await import(pathToFileURL(join(folder, more, name, "dist/index.js")).href);
    const { claims } = new page.ContainerBackend(page.configSchema.parse({ image }));
    expect(claims).toHaveLength(11);
    // A claim that isn't proven here would be skipped, and the test would show less than the page says.
    const mustProve = claims.map((claim) => `containers:${claim}`).join(",");
    const passed = await passKit(folder, join(more, name), {
      env: { ...env, AMBIT_MUST_PROVE: mustProve },
      ...(process.env.AMBIT_SOAK ? {} : { only: added }),
    });
    expect(passed).toBeGreaterThan(70);
  });
});

interface BinaryPipe {
  readonly output: ReadableStream<Uint8Array>;
  write(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

interface Page {
  readonly ContainerBackend: new (config: unknown) => SandboxBackend;
  readonly configSchema: { parse(config: object): unknown };
}

/** The demo agent calls a code tool in the page's sandbox, then tries to reach this host. */
async function runsAnAgent(config: object, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const outside = await callbackServer(() => "reached");
  const plugins = [{ use: name, config }, "@ambit/harness-acp", "@ambit/mcp-http", "@ambit/executor-code"];
  await writeFile(join(folder, "ambit.config.json"), JSON.stringify({ plugins }));
  const input = {
    ...demo('call add {"a": 2, "b": 40}', `fetch ${outside.endpoint}`),
    customTools: [
      {
        name: "add",
        kind: "code",
        runtime: "python",
        code: "def main(a, b):\n    return a + b",
        permission: "allow",
        inputSchema: { type: "object" },
      },
    ],
    sandboxPermission: { network: "off" },
  };
  const { code, stdout, stderr } = await ambit(["run", "-"], { cwd: folder, input, env });
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
  const { events, receipt }: RunResult = JSON.parse(stdout);
  const outputs = events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));
  expect(outputs).toEqual(["42", expect.stringMatching(/^fetch failed/)]);
  expect(outside.calls).toEqual([]);
  expect(receipt?.guarantees.map(({ by, capability }) => `${by} ${capability}`)).toEqual([
    "containers network.deny",
    "containers process.contained",
    "containers environment.named-only",
  ]);
}
