// needs: jail, git
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../support/ambit.js";
import { withForge } from "../support/configurations.js";
import { type Forge, startForge } from "../support/forge/forge.js";
import { type Registry, registryHost, startRegistry } from "../support/forge/registry.js";

const tokens = {
  forge: `ghp_${"wholestory".repeat(3)}`,
  registry: `npm_${"wholestory".repeat(3)}`,
  model: `key_${"wholestory".repeat(3)}`,
};
/** Looks like one, and is inside: the same search must find it. */
const planted = `abc_${"wholestory".repeat(3)}`;
/** The start of each, as one pattern that doesn't find itself. */
const search = `grep -raoshE "[a-z]{3}_wholestory[a-z]*" /workspace ~ /tmp /proc/[0-9]*/environ /proc/[0-9]*/cmdline | sort -u`;
const folder = mkdtempSync(join(tmpdir(), "ambit-story-"));
let forge: Forge;
let registry: Registry;
let model: ModelServer;
let server: Server;

beforeAll(async () => {
  forge = await startForge({ [tokens.forge]: { fetch: /^\/acme\//, push: /^\/acme\// } });
  registry = await startRegistry(tokens.registry);
  model = await startModelServer({ expectedKey: tokens.model });
  const authorities = { TEST_FORGE_AUTHORITY: forge.authority, TEST_REGISTRY_AUTHORITY: registry.authority };
  const env: Record<string, string> = {
    TEST_WORKSPACE: JSON.stringify({ preparedFolder: join(folder, "prepared") }),
  };
  for (const [name, pem] of Object.entries(authorities)) {
    env[name] = join(folder, `${name}.pem`);
    writeFileSync(join(folder, `${name}.pem`), pem);
  }
  server = await startServer(env, withForge);
}, 120_000);
afterAll(async () => {
  server.process.kill("SIGTERM");
  await server.exit;
  await model[Symbol.asyncDispose]();
  await registry.close();
  await forge.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The repository's test needs a package of the registry, and fails. */
const files = {
  "sum.mjs": "export const sum = (one, other) => one - other;\n",
  "test.mjs": [
    'import { execFileSync } from "node:child_process";',
    'import { sum } from "./sum.mjs";',
    'if (sum(1, 2) !== 3) throw new Error("the sum is wrong");',
    'console.log(String(execFileSync("node_modules/.bin/greet")));\n',
  ].join("\n"),
};

function repository(): string {
  const at = `${registryHost}:${registry.port}`;
  return forge.repository("acme/story", {
    "package.json": JSON.stringify({
      name: "story",
      scripts: { test: "node test.mjs" },
      dependencies: { greeting: "1.0.0" },
    }),
    ".npmrc": `registry=https://${at}/\n//${at}/:${["_auth", "Token=$", "{NPM_TOKEN}"].join("")}\n`,
    ".gitignore": "node_modules\n",
    ...files,
  });
}

/** What one person asks for, in one request. */
function asked(branch: string, prompt: string) {
  const at = registry.port;
  return {
    harness: "gemini",
    messages: [{ role: "user", content: prompt }],
    model: "gemini-2.5-flash",
    modelConnection: {
      provider: "google",
      endpoint: { baseUrl: model.url },
      credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: tokens.model }],
    },
    permissions: { default: "allow" },
    sandboxPermission: { network: "off", filesystem: "workspace", secrets: "hidden" },
    workspace: {
      sources: [{ type: "git", url: forge.url("acme/story"), credential: { value: tokens.forge } }],
    },
    environment: {
      setup: [
        "npm install --no-audit --no-fund --no-update-notifier",
        `printf ${planted.slice(0, 6)}%s ${planted.slice(6)} > /tmp/planted; ${search}`,
      ],
      credentials: [
        { name: "NPM_TOKEN", value: tokens.registry, hosts: [`${registryHost}:${at}`], as: "bearer" },
      ],
      boundary: { network: { allowlist: [`${registryHost}:${at}`, `127.0.0.0/8:${at}`] } },
    },
    outputs: {
      include: ["*.mjs"],
      patch: true,
      git: {
        branch,
        message: "Add instead of subtracting",
        author: { name: "Robot", email: "robot@acme.example" },
        credential: { value: tokens.forge },
      },
    },
  };
}

async function run(body: object) {
  const text = await (await server.post("/run", body)).text();
  for (const token of Object.values(tokens)) expect(text + server.log()).not.toContain(token);
  return JSON.parse(text);
}

/** What the agent's commands printed, as its model got it. */
const printedTo = (prompt: string) =>
  model.requests
    .filter(({ body }) => JSON.stringify(body).includes(JSON.stringify(prompt).slice(1, -1)))
    .at(-1)
    ?.toolResults.map(({ text }) => text) ?? [];

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

describe("the whole way of a change", { timeout: 240_000 }, () => {
  it("goes from a private repository by a registry and a real agent without a network to a branch", async () => {
    const base = repository();
    const at = `${registryHost}:${registry.port}`;
    const prompt = [
      "[[shell npm test]]",
      "[[shell sed -i 's/one - other/one + other/' sum.mjs; npm test]]",
      `[[shell printf ${planted.slice(0, 6)}%s ${planted.slice(6)} > /tmp/planted; ${search}; rm /tmp/planted]]`,
      `[[shell env; cat .npmrc; node -e "fetch('https://${at}').catch(({ cause }) => console.log('no way out', cause.code))"]]`,
    ].join(" ");
    const cold = await run(asked("robot/one", prompt));
    expect(cold, server.log()).toMatchObject({ ok: true });

    const [failed, passed, found, rest] = printedTo(prompt);
    expect(failed).toContain("the sum is wrong");
    expect(passed).toContain("hello from the package");
    // Nothing but what the command itself put there; neither the variable nor its placeholder is the agent's.
    expect(credentialsIn(found)).toEqual([planted]);
    expect(rest).toContain("no way out");
    expect(rest).not.toMatch(/NPM_TOKEN=|AMBIT_SOURCE_CREDENTIAL/);
    const setup = (cold.events as { name?: string; data: { index?: number; text?: string } }[])
      .filter(({ name, data }) => name === "setup" && data.index === 1)
      .map(({ data }) => data.text ?? "");
    expect(credentialsIn(setup.join(""))).toEqual([planted]);

    // What was outside got the values themselves.
    expect(registry.served.map(({ authorization }) => authorization)).toContain(`Bearer ${tokens.registry}`);
    expect(model.requests[0]?.credentials).toEqual([tokens.model]);

    const changed = "export const sum = (one, other) => one + other;\n";
    const commit = forge.git("acme/story", "rev-parse", "robot/one");
    expect(forge.git("acme/story", "show", "--format=%P", "--name-only", commit).split(/\n+/)).toEqual([
      base,
      "sum.mjs",
    ]);
    expect(forge.git("acme/story", "show", `${commit}:sum.mjs`)).toBe(changed.trim());
    expect(cold.receipt).toMatchObject({
      sources: [{ commit: base, files: 5, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      environment: { from: "built", kept: true, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      outputs: {
        files: [
          { path: "sum.mjs", sha256: sha256(changed) },
          { path: "test.mjs", sha256: sha256(files["test.mjs"]) },
        ],
        patch: {
          changes: [
            {
              change: "modified",
              path: "sum.mjs",
              sha256: sha256(changed),
              before: sha256(files["sum.mjs"]),
            },
          ],
        },
        git: { branch: "robot/one", base, commit, pushed: true },
      },
    });

    const asks = registry.served.length;
    const warm = await run(asked("robot/two", prompt));
    expect(warm, server.log()).toMatchObject({ ok: true });
    expect(warm.receipt.environment).toEqual({ ...cold.receipt.environment, from: "cache" });
    expect(registry.served.length).toBe(asks);
    expect(forge.git("acme/story", "show", "robot/two:sum.mjs")).toBe(changed.trim());
  });
});

const credentialsIn = (printed = "") => [...new Set(printed.match(/[a-z]{3}_wholestory[a-z]*/g) ?? [])];
