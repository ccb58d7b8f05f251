import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@ambit/backend-kit";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyOf, demo, repository } from "./support/ambit.js";

const token = "token-of-the-container-test";
const reason = unavailableReason() ?? (await composeProblem());
const isRunnable = reason === undefined;

const files = ["compose.yaml", "test/e2e/support/compose.override.yaml"].flatMap((path) => ["--file", path]);
const project = `ambit-e2e-${process.pid}`;
/** In place of an agent, whose package takes a registry: what the base image has already. */
const installed = "/usr/local/lib/node_modules/npm";
const confined = { ...demo("say hello"), sandboxPermission: { network: "off", filesystem: "workspace" } };
let port = 0;

/** Docker's command line and Compose, as a user runs them. */
async function call(
  program: string,
  argv: readonly string[],
  variables: Record<string, string> = {},
  input = "",
) {
  const { socket, bridges, image } = dockerEngine();
  const env = {
    PATH: process.env.PATH,
    DOCKER_HOST: `unix://${socket}`,
    AMBIT_BASE_IMAGE: image,
    AMBIT_PACKAGES: "prebuilt",
    AMBIT_PORT: String(port),
    AMBIT_TEST_BRIDGE: bridges.compose,
    ...variables,
  };
  const options = { cwd: repository, env, extendEnv: false, input, reject: false, all: true } as const;
  const { exitCode, all } = await execa(program, argv, options);
  return { code: exitCode, text: all };
}

const docker = (argv: readonly string[], input = "") => call("/usr/bin/docker", argv, {}, input);
const compose = (argv: readonly string[], variables: Record<string, string> = { AMBIT_TOKEN: token }) =>
  call(join(repository, ".cache/docker-compose"), ["--project-name", project, ...files, ...argv], variables);

async function composeProblem(): Promise<string | undefined> {
  if (!existsSync("/usr/bin/docker")) return "docker's command line is missing: apt-get install docker.io";
  if (existsSync(join(repository, ".cache/docker-compose"))) return undefined;
  return "Compose 2 is missing: node scripts/docker-engine.mjs brings it";
}

const post = (body: object, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${port}/run`, { method: "POST", headers, body: JSON.stringify(body) });

describe("the container image", () => {
  beforeAll(async () => {
    if (!isRunnable) return;
    port = await freePort();
    // In CI the check of the packages has just created it.
    if (!process.env.CI)
      await execa(process.execPath, ["scripts/packages/install-packages.mjs", ".cache/container"], {
        cwd: repository,
      });
    const built = await compose(["build"], { AMBIT_TOKEN: token, AMBIT_AGENTS: installed });
    if (built.code !== 0) throw new Error(built.text);
  }, 300_000);

  afterAll(async () => {
    if (isRunnable) await compose(["down", "--volumes", "--timeout", "5"]);
  }, 60_000);

  it("has the agents of AMBIT_AGENTS where Ambit looks for them", async (context) => {
    if (!isRunnable) context.skip(`host: ${reason}`);
    const argv = ["run", "--rm", "--network", "none", "--entrypoint", "node", "ambit"];
    const found = await docker([...argv, "--print", "require.resolve('npm/package.json')"]);
    expect(found.code, found.text).toBe(0);
  });

  it("doesn't start without a token, with Compose or Docker", async (context) => {
    if (!isRunnable) context.skip(`host: ${reason}`);
    const unset: Record<string, string>[] = [{}, { AMBIT_TOKEN: "" }];
    for (const variables of unset) {
      const refused = await compose(["up", "--detach"], variables);
      expect(refused.text).toContain("AMBIT_TOKEN");
      expect(refused.code).not.toBe(0);
    }
    const ended = await docker(["run", "--rm", "--network", "none", "ambit"]);
    expect(ended.text).toContain("AMBIT_TOKEN");
    expect(ended.code).toBe(2);
    const short = await compose(["run", "--rm", "ambit"], { AMBIT_TOKEN: "short" });
    expect(short.text).toContain("AMBIT_TOKEN");
    expect(short.code).toBe(2);
  });

  it("serves a confined run without privileges", async (context) => {
    if (!isRunnable) context.skip(`host: ${reason}`);
    const started = await compose(["up", "--detach", "--wait"]);
    expect(started.text).toContain("Healthy");
    expect((await post(confined)).status).toBe(401);
    const response = await post(confined, { authorization: `Bearer ${token}` });
    const result = await bodyOf(response);
    expect(result).toMatchObject({ ok: true, output: "hello" });
    expect(result.receipt).toMatchObject({
      sandbox: "local",
      confinement: "confined",
      enforcement: "strict",
    });
    expect(result.receipt?.guarantees.map(({ capability }) => capability)).toEqual(
      expect.arrayContaining(["network.deny", "filesystem.workspace-only", "process.contained"]),
    );
    expect(result.receipt?.guarantees.every(({ how }) => how !== undefined)).toBe(true);

    const state = "grep -E '^(Uid|CapEff|NoNewPrivs)' /proc/1/status; touch /opt/ambit/x || echo read-only";
    const seen = await compose(["exec", "--no-TTY", "ambit", "sh", "-c", state]);
    expect(seen.text).toMatch(
      /Uid:\s+10001\s[\s\S]*CapEff:\s+0{16}\s[\s\S]*NoNewPrivs:\s+1\s[\s\S]*read-only/,
    );
  });

  it("refuses the same run if the container's flags don't allow a sandbox, and names them", async (context) => {
    if (!isRunnable) context.skip(`host: ${reason}`);
    const argv = [
      "run",
      "--rm",
      "--interactive",
      "--init",
      "--network",
      "none",
      "ambit",
      "run",
      "--json",
      "-",
    ];
    const { code, text } = await docker(argv, JSON.stringify(confined));
    expect(text).toContain("boundary_refused");
    expect(text).toContain("--security-opt seccomp=unconfined");
    expect(code).not.toBe(0);
  });
});
