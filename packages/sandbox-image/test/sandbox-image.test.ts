import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { hasSandboxImage, loadSandboxImage, sandboxImageName } from "../src/index.js";
import { recipeOf } from "../src/recipe.js";

const program = join(import.meta.dirname, "../bin/ambit-sandbox-image.mjs");

/** Runs the command line, with nothing but Node on the PATH. */
function run(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...argv], {
    encoding: "utf8",
    env: { PATH: "", ...env },
  });
  return { status, stdout, stderr };
}

async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), "ambit-sandbox-image-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** An engine that gives one answer to everything. */
async function engineThatAnswers(status: number, body: string) {
  const socket = join(await temporaryFolder(), "engine.sock");
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    request.resume().on("end", () => response.writeHead(status).end(body));
  }).listen(socket);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { engine: `unix://${socket}`, requests };
}

it("has the Debian packages that the README names", async () => {
  const readme = await readFile(join(import.meta.dirname, "../README.md"), "utf8");
  expect(recipeOf().packages.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
});

describe("the image's name", () => {
  it("changes with the image's content, and with nothing else", () => {
    expect(sandboxImageName()).toMatch(/^ambit-sandbox:[\da-f]{12}$/);
    expect(sandboxImageName({ packages: ["git"] })).toBe(sandboxImageName());
    expect(sandboxImageName({ packages: ["jq", "ripgrep"] })).toBe(
      sandboxImageName({ packages: ["ripgrep", "jq"] }),
    );
    expect(sandboxImageName({ packages: ["jq"] })).not.toBe(sandboxImageName());
    expect(run(["name", "--include", "jq"]).stdout).toBe(`${sandboxImageName({ packages: ["jq"] })}\n`);
  });

  it("isn't computed for an invalid package name", () => {
    for (const name of ["jq,--hook=id", "--customize-hook=id", "a b", ""])
      expect(() => sandboxImageName({ packages: [name] })).toThrow("can't be the name of a Debian package");
  });
});

describe("ambit-sandbox-image", () => {
  it("names the package to install if it can't build", async () => {
    const { status, stderr } = run(["build", "--output", join(await temporaryFolder(), "image.tar")]);
    expect(stderr).toContain("apt-get install mmdebstrap");
    expect(status).toBe(1);
  });

  it("prints its help, and refuses unknown arguments", () => {
    expect(run(["--help"])).toMatchObject({ status: 0, stderr: expect.stringContaining("--output") });
    expect(run([])).toMatchObject({ status: 2 });
    expect(run(["build", "--tag", "x"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--tag"),
    });
  });

  it("reports what to do for an engine on another machine, before it builds", () => {
    const { status, stderr } = run(["build"], { DOCKER_HOST: "tcp://10.0.0.1:2375" });
    expect(stderr).toContain("--output");
    expect(status).toBe(1);
  });

  it("builds nothing if the engine has it", async () => {
    const { engine, requests } = await engineThatAnswers(200, "{}");
    expect(await hasSandboxImage({ engine })).toBe(true);
    expect(requests).toEqual([`GET /images/${sandboxImageName()}/json`]);
  });
});

describe("loading an image", () => {
  it("fails with the engine's message, including one within a 200", async () => {
    const archive = join(await temporaryFolder(), "image.tar");
    await writeFile(archive, "not an archive");
    const failing = await engineThatAnswers(200, '{"errorDetail":{},"error":"unexpected EOF"}');
    await expect(loadSandboxImage(archive, failing)).rejects.toThrow("unexpected EOF");
    const full = await engineThatAnswers(500, '{"message":"no space left on device"}');
    await expect(loadSandboxImage(archive, full)).rejects.toThrow("no space left on device");
    const accepting = await engineThatAnswers(200, '{"status":"sha256:…"}');
    expect(await loadSandboxImage(archive, accepting)).toBe(sandboxImageName());
  });
});
