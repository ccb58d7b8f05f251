import { mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import type { Profile } from "../../src/profiles/profile.js";
import { ProcessSandbox } from "../support/process-sandbox.js";
import { eventsOf, requestOf, TestScope, textOf, turnOf } from "../support/runs.js";

const { entry: _entry, isBundled: _isBundled, ...program } = demo.program;
/** The demo agent, in a package of a deployer that npm replaces. */
const profile: Profile = { ...demo, program: { ...program, package: "an-agent", bin: "an-agent" } };

let folder: string;
let sandbox: ProcessSandbox;
let harness: AcpHarness;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "ambit-replaced-")));
  sandbox = await ProcessSandbox.open();
  const limits = { cancelMs: 10_000, closeMs: 2_000, messageCharacters: 1e6, bufferedCharacters: 262_144 };
  harness = new AcpHarness(profile, { folder, limits });
});
afterEach(async () => {
  vi.useRealTimers();
  await sandbox.close();
  await rm(folder, { recursive: true });
});

const place = () => join(folder, "node_modules/an-agent");

/** Puts a version in place as npm does: the former one is moved away, and the new one extracted. */
async function install(version: string, { bin = "main.js", before = "", needs = [] as string[] } = {}) {
  await rm(place(), { recursive: true, force: true });
  await mkdir(place(), { recursive: true });
  const dependencies = Object.fromEntries(needs.map((name) => [name, "*"]));
  for (const name of needs) {
    await mkdir(join(folder, "node_modules", name), { recursive: true });
    await writeFile(join(folder, "node_modules", name, "package.json"), JSON.stringify({ name }));
  }
  const told = `import { writeFileSync } from "node:fs"; writeFileSync(process.env.HOME + "/version", "${version}");`;
  const entry = demo.program.entry ?? "";
  await writeFile(
    join(place(), bin),
    `${told}${before}\nawait import(${JSON.stringify(entry.startsWith("file:") ? fileURLToPath(entry) : entry)});`,
  );
  const manifest = { name: "an-agent", version, type: "module", bin: { "an-agent": bin }, dependencies };
  await writeFile(join(place(), "package.json"), JSON.stringify(manifest));
}

async function start(prompt = "say hello") {
  const scope = new TestScope(sandbox, { request: {} });
  onTestFinished(() => scope.close());
  const agent = await harness.start(scope);
  return { agent, said: textOf(await eventsOf(agent, turnOf({ prompt }))) };
}
const started = () => readFile(join(sandbox.home, "version"), "utf8");

it("starts the version that is installed now, with all of its packages, and drops the former one", async () => {
  await install("1.0.0");
  const first = await start();
  expect([first.said, await started()]).toEqual(["hello", "1.0.0"]);
  expect(first.agent.isOutdated?.()).toBe(false);
  expect(harness.requiredPaths("host").map(({ path }) => path)).not.toContain(
    join(folder, "node_modules/new"),
  );

  // Its program has another name now, and it needs another package.
  await install("2.0.0", { bin: "another.js", needs: ["new"] });
  expect(first.agent.isOutdated?.()).toBe(true);
  expect(harness.requiredPaths("host").map(({ path }) => path)).toContain(join(folder, "node_modules/new"));
  const second = await start();
  expect([second.said, await started()]).toEqual(["hello", "2.0.0"]);
  expect(second.agent.isOutdated?.()).toBe(false);
});

it("is another one where the same version was installed again, or only another package changed", async () => {
  await install("1.0.0");
  const first = await start();
  const list = join(folder, "node_modules/.package-lock.json");
  await writeFile(list, "{}");
  expect(first.agent.isOutdated?.()).toBe(true);
  const second = await start();
  expect(second.agent.isOutdated?.()).toBe(false);
  await install("1.0.0");
  expect(second.agent.isOutdated?.()).toBe(true);
});

it("says that it isn't installed while it isn't there", async () => {
  await install("1.0.0");
  expect(harness.issues(requestOf(), "host", false)).toEqual([]);
  await rename(place(), join(folder, "away"));
  expect(harness.issues(requestOf(), "host", false)).toMatchObject([{ path: "harness" }]);
  await rename(join(folder, "away"), place());
  expect(harness.issues(requestOf(), "host", false)).toEqual([]);
});

it("fails a start during which it was replaced, to be tried again", async () => {
  const renames = `import { renameSync } from "node:fs"; renameSync(${JSON.stringify(place())}, ${JSON.stringify(`${folder}/former`)});`;
  await install("1.0.0", { before: renames });
  await expect(start()).rejects.toMatchObject({
    code: "harness_failed",
    retryable: true,
    message: expect.stringMatching(/was replaced while it started: send the run again/),
  });
  await install("2.0.0");
  expect((await start()).said).toBe("hello");
});

it("fails a start of what may be half an installation to be tried again, and a minute later for good", async () => {
  await install("1.0.0", { before: 'await import("./not-there-yet.js");' });
  await expect(start()).rejects.toMatchObject({
    retryable: true,
    message: expect.stringMatching(
      /exit code 1.*, and its packages were changed less than a minute ago: send the run again/,
    ),
  });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
  await expect(start()).rejects.toMatchObject({
    retryable: false,
    message: expect.stringMatching(/exit code 1/),
  });
});
