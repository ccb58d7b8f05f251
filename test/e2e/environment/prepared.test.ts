// needs: jail, git
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunResult } from "@ambit/core";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { demo, emptyFolder, ndjson, recordsOf, type Server, serve, startServer } from "../support/ambit.js";
import { withForge } from "../support/configurations.js";
import { type Forge, startForge } from "../support/forge/forge.js";
import { type Registry, registryHost, startRegistry } from "../support/forge/registry.js";

const forgeToken = `ghp_${"prepared".repeat(5)}`;
const npmToken = `npm_${"registry".repeat(5)}`;
const folder = mkdtempSync(join(tmpdir(), "ambit-prepared-"));
const preparedFolder = join(folder, "prepared");
/** npm replaces the variable, in the sandbox of the setup only. */
const tokenSetting = ["_auth", "Token=$", "{NPM_TOKEN}"].join("");
let forge: Forge;
let registry: Registry;
let server: Server;
let authorities: Record<string, string>;

beforeAll(async () => {
  forge = await startForge({ [forgeToken]: { fetch: /^\/acme\//, push: /^\/acme\// } });
  registry = await startRegistry(npmToken);
  const at = `${registryHost}:${registry.port}`;
  forge.repository("acme/app", {
    "package.json": JSON.stringify({ name: "app", dependencies: { greeting: "1.0.0" } }),
    ".npmrc": `registry=https://${at}/\n//${at}/:${tokenSetting}\n`,
    ".gitignore": "node_modules\n",
    "a.txt": "one\n",
  });
  const files = { TEST_FORGE_AUTHORITY: forge.authority, TEST_REGISTRY_AUTHORITY: registry.authority };
  authorities = Object.fromEntries(
    Object.entries(files).map(([name, pem]) => {
      const path = join(folder, `${name}.pem`);
      writeFileSync(path, pem);
      return [name, path];
    }),
  );
  server = await startServer(settings(), withForge);
}, 120_000);
afterAll(async () => {
  server.process.kill("SIGTERM");
  await server.exit;
  await registry.close();
  await forge.close();
  rmSync(folder, { recursive: true, force: true });
});

const settings = () => ({ ...authorities, TEST_WORKSPACE: JSON.stringify({ preparedFolder }) });

/** The same with containers of this runtime too. */
async function withContainers(runtime: "runc"): Promise<Server> {
  const { socket, image } = dockerEngine();
  return await serve(
    {
      ...settings(),
      TEST_DOCKER_SOCKET: socket,
      TEST_DOCKER_IMAGE: image,
      TEST_DOCKER_RUNTIME: runtime,
      TEST_DOCKER_DATA: await emptyFolder(),
    },
    withForge,
  );
}

const closed = { network: "off", filesystem: "workspace" };
const source = (more: object = {}) => ({
  type: "git",
  url: forge.url("acme/app"),
  credential: { value: forgeToken },
  ...more,
});
/** Setup that installs from the registry, with a token that stays outside. */
const installing = (more: object = {}) => ({
  setup: ["npm install --no-audit --no-fund --no-update-notifier"],
  credentials: [
    { name: "NPM_TOKEN", value: npmToken, hosts: [`${registryHost}:${registry.port}`], as: "bearer" },
  ],
  boundary: {
    network: { allowlist: [`${registryHost}:${registry.port}`, `127.0.0.0/8:${registry.port}`] },
  },
  ...more,
});
const plain = (setup: readonly string[], more: object = {}) => ({
  setup,
  boundary: { network: "off" },
  ...more,
});

async function run(script: string, environment: object, more: object = {}, at: Server = server) {
  const body = { ...demo(`run ${script}`, "say done"), sandboxPermission: closed, environment, ...more };
  const text = await (await at.post("/run", body)).text();
  expect(text + at.log()).not.toContain(npmToken);
  expect(text + at.log()).not.toContain(forgeToken);
  const result = JSON.parse(text);
  const setup = (result.events ?? []).flatMap((event: { type: string; name?: string; data: object }) =>
    event.type === "data" && event.name === "setup" ? [event.data] : [],
  );
  const ended = (result.events ?? []).find(({ type }: { type: string }) => type === "tool_result");
  const printed = String(ended?.output);
  return { result, setup, printed, environment: result.receipt?.environment };
}

describe("an environment", { timeout: 300_000 }, () => {
  it.for(["local", "runc"] as const)(
    "is prepared from a private repository with a registry, once, for an agent without a network: %s",
    async (sandbox, context) => {
      const missing = sandbox === "runc" ? unavailableReason(sandbox) : undefined;
      if (missing !== undefined) context.skip(`host: ${missing}`);
      const at = sandbox === "runc" ? await withContainers(sandbox) : server;
      const branch = `ambit/${sandbox}`;
      const asked = {
        sandbox,
        workspace: { sources: [source()] },
        outputs: {
          patch: true,
          git: {
            branch,
            message: "Change it",
            author: { name: "Robot", email: "robot@acme.example" },
            credential: { value: forgeToken },
          },
        },
      };
      // What an agent would find of a credential: in files, variables, and memory of others. The pattern doesn't find itself.
      const look = `grep -rE "[n]${npmToken.slice(1)}|[g]${forgeToken.slice(1)}" /workspace ~ /tmp; env; cat /proc/*/environ`;
      const script = `npx --no-install greet; printf two > a.txt; ${look}; cat .npmrc`;
      const cold = await run(script, installing(), asked, at);
      expect(cold.result, at.log()).toMatchObject({ ok: true, output: "done" });
      expect(cold.printed).toContain("hello from the package");
      expect(cold.printed).toContain(tokenSetting);
      // Neither the variable nor its placeholder is the agent's.
      expect(cold.printed).not.toMatch(/NPM_TOKEN=|AMBIT_SOURCE_CREDENTIAL/);
      expect(cold.environment).toMatchObject({ from: "built", kept: true });
      expect(cold.setup).toMatchObject([
        { state: "started", index: 0, command: installing().setup[0] },
        { state: "output", text: expect.stringContaining("added 1 package") },
        { state: "ended", exitCode: 0, omitted: 0 },
      ]);
      expect(cold.result.receipt.outputs.git).toMatchObject({ branch });
      expect(forge.git("acme/app", "show", `${branch}:a.txt`)).toBe("two");
      // The registry got the value itself, and nothing that is kept has it.
      expect(registry.served.map(({ authorization }) => authorization)).toContain(`Bearer ${npmToken}`);
      expect(keptBytes()).toContain("hello from the package");
      expect(keptBytes()).not.toContain(npmToken);
      expect(keptBytes()).not.toContain(forgeToken);

      const asks = registry.served.length;
      const warm = await run(script, installing(), { ...asked, outputs: { patch: true } }, at);
      expect(warm.result, at.log()).toMatchObject({ ok: true, output: "done" });
      expect(warm.printed).toContain("hello from the package");
      expect(warm.printed).not.toMatch(/NPM_TOKEN=|AMBIT_SOURCE_CREDENTIAL/);
      expect(warm.setup).toEqual([]);
      expect(registry.served.length).toBe(asks);
      expect(warm.environment).toEqual({ ...cold.environment, from: "cache" });
      expect(warm.result.receipt.sources).toEqual(cold.result.receipt.sources);
    },
  );

  it("isn't given to those who may not read its repository", async () => {
    await run("true", plain(["echo made > made"]), { workspace: { sources: [source()] } });
    const credential = { value: "not-a-token-of-the-forge" };
    const { result } = await run("true", plain(["echo made > made"]), {
      workspace: { sources: [source({ credential })] },
    });
    expect(result).toMatchObject({ failure: { code: "source_failed", reason: "authentication" } });
  });

  it("is used by the same project only, and for exactly the same request", async () => {
    const from = async (environment: object, more: object = {}) =>
      (await run("true", environment, more)).environment.from;
    const first = plain(["echo one > made"], { env: { A: "1" } });
    expect(await from(first, { projectId: "one" })).toBe("built");
    expect(await from(first, { projectId: "one" })).toBe("cache");
    expect(await from(first, { projectId: "two" })).toBe("built");
    expect(await from(first)).toBe("built");
    const files = (content: string) => ({
      projectId: "one",
      workspace: { sources: [{ type: "files", files: [{ path: "a", content }] }] },
    });
    expect(await from(first, files("1"))).toBe("built");
    expect(await from(first, files("2"))).toBe("built");
    expect(await from(first, files("1"))).toBe("cache");
    expect(await from({ ...first, env: { A: "2" } }, { projectId: "one" })).toBe("built");
    expect(await from({ ...first, setup: ["echo two > made"] }, { projectId: "one" })).toBe("built");
    expect(
      await from({ ...first, boundary: { network: { allowlist: ["example.com"] } } }, { projectId: "one" }),
    ).toBe("built");
    expect(await from({ ...first, cache: "refresh" }, { projectId: "one" })).toBe("built");
    const off = await run("cat made", { ...first, cache: "off" }, { projectId: "one" });
    expect(off.environment).toMatchObject({ from: "built", kept: false });
    expect(off.printed).toContain("one");
  });

  it("is prepared once by those who ask at the same time", async () => {
    const gate = await startGate();
    const environment = {
      setup: [`node -e "fetch('${gate.url}')"; date +%s%N > made`],
      boundary: { network: { allowlist: [new URL(gate.url).host] } },
    };
    const first = run("cat made", environment);
    await gate.reached;
    const body = { ...demo("run cat made", "say done"), sandboxPermission: closed, environment };
    let second: RunResult | undefined;
    for await (const record of recordsOf(await server.post("/run", body, ndjson))) {
      if (record.kind === "result") second = record.result;
      else if (JSON.stringify(record).includes('"state":"waiting"')) gate.open();
    }
    expect((await first).environment).toMatchObject({ from: "built" });
    expect(second?.receipt?.environment).toEqual({ ...(await first).environment, from: "cache" });
    expect(JSON.stringify(second?.events ?? [])).toBe("[]");
    gate.close();
  });

  it("keeps links and what is in the home, and nothing of a command's processes", async () => {
    const { printed } = await run(
      "ls -l link; cat link ~/kept; cat /tmp/scratch; pgrep sleep",
      plain(["echo content > file; ln -s file link; echo home > ~/kept; echo x > /tmp/scratch; sleep 600 &"]),
    );
    expect(printed).toContain("link -> file");
    expect(printed).toMatch(/content\n.*home/s);
    expect(printed).toContain("/tmp/scratch: No such file");
  });

  it("fails with the end of the output of the command that failed", async () => {
    const { result, setup } = await run(
      "true",
      plain(["echo first", "echo before; echo the reason >&2; exit 3", "echo never"]),
    );
    expect(result).toMatchObject({ ok: false, failure: { code: "setup_failed", retryable: false } });
    expect(result.error).toMatch(/^environment\.setup\[1\] exited with 3\. .*\n(.*\n)*the reason/);
    expect(setup.map(({ state, index }: { state: string; index: number }) => `${state} ${index}`)).toEqual([
      ...["started 0", "output 0", "ended 0"],
      ...["started 1", "output 1", "output 1", "ended 1"],
    ]);
  });

  it("reports what its commands may not reach", async () => {
    const { result } = await run("true", installing({ setup: ["npm ping --registry https://other.test"] }));
    expect(result.failure.code).toBe("setup_failed");
    expect(result.events).toContainEqual(
      expect.objectContaining({ type: "boundary_decision", target: "other.test:443", allowed: false }),
    );
  });

  it("isn't used if a credential got into it", async () => {
    // The control: the same search, of a value that isn't a credential.
    const value = "a-value-of-the-test-0123456789";
    const writing = plain(["echo $VALUE | base64 > leaked"], { env: { VALUE: value } });
    expect((await run("true", writing)).result).toMatchObject({ ok: true });
    const credential = { name: "TOKEN", value, hosts: ["example.com"], as: "bearer" };
    const { result } = await run("true", {
      ...writing,
      credentials: [credential],
      boundary: { network: { allowlist: ["example.com"] } },
    });
    expect(result).toMatchObject({ ok: false, failure: { code: "setup_failed" } });
    expect(result.error).toContain("has a credential in it");
  });

  it("can be prepared beforehand, without a prompt", async () => {
    const body = {
      harness: "demo",
      sandboxPermission: closed,
      environment: plain(["echo ahead > made"], { prepareOnly: true }),
    };
    const result = await (await server.post("/run", body)).json();
    expect(result).toMatchObject({ ok: true, stopReason: "prepared" });
    const { environment, printed } = await run("cat made", plain(["echo ahead > made"]));
    expect(environment.from).toBe("cache");
    expect(printed).toContain("ahead");
  });

  it.each<[string, object, object, string]>([
    ["a workspace that the agent can't write", {}, { network: "off", filesystem: "readonly" }, "environment"],
    [
      "a network that can't be read",
      { boundary: { network: { allowlist: ["a b"] } } },
      closed,
      "environment.boundary.network.allowlist[0]",
    ],
    ["another file system", { boundary: { filesystem: "on" } }, closed, "environment.boundary.filesystem"],
    ["no command", { setup: [] }, closed, "environment.setup"],
    [
      "a credential with the name of a variable",
      {
        env: { A: "1" },
        credentials: [{ name: "A", value: "12345678", hosts: ["a.example"], as: "bearer" }],
      },
      closed,
      "environment.credentials[0].name",
    ],
  ])("is refused by its field with %s", async (_what, environment, sandboxPermission, path) => {
    const body = { ...demo("say hi"), sandboxPermission, environment: plain(["true"], environment) };
    const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
    expect(failure.issues).toEqual([expect.objectContaining({ path })]);
  });

  it("is refused with the gap of its own sandbox", async () => {
    const credentials = [{ name: "A", value: "12345678", hosts: ["a.example"], as: "bearer" }];
    const body = {
      ...demo("say hi"),
      sandboxPermission: closed,
      environment: plain(["true"], { credentials }),
    };
    const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
    expect(failure.gaps).toEqual([
      expect.objectContaining({ subject: "environment", capability: "secrets.hidden" }),
    ]);
  });
});

/** Everything that is kept, of every project. */
function keptBytes(): string {
  return readdirSync(preparedFolder)
    .flatMap((project) => readdirSync(join(preparedFolder, project)).map((name) => join(project, name)))
    .map((path) => readFileSync(join(preparedFolder, path), "latin1"))
    .join("");
}

/** A server that answers its one request when the test says so. */
async function startGate() {
  const { promise: reached, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    arrive();
    void opened.then(() => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, reached, open, close: () => server.close() };
}
