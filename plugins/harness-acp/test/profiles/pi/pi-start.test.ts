import { appendFile, chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { Compilation } from "../../../src/installation/compile-ahead.js";
import { locateProgram } from "../../../src/installation/locate-program.js";
import { pi } from "../../../src/profiles/pi.js";
import type { Preparation, Profile } from "../../../src/profiles/profile.js";
import { AgentStage, folder } from "../../support/agent-stage.js";
import { eventsOf, turnOf } from "../../support/runs.js";

it("starts Pi without a search for updates, where the image's PATH has pi and npm", {
  timeout: 60_000,
}, async () => {
  const programs = await mkdtemp(join(tmpdir(), "ambit-pi-"));
  onTestFinished(() => rm(programs, { recursive: true }));
  const asked = join(programs, "asked");
  for (const name of ["pi", "npm"]) {
    await writeFile(join(programs, name), `#!/bin/sh\necho ${name} "$@" >> '${asked}'\necho 0.0.1\n`);
    await chmod(join(programs, name), 0o755);
  }
  const stage = await AgentStage.open(pi);
  onTestFinished(() => stage.close());
  const start = async (change: Partial<Profile>) => {
    await writeFile(asked, "");
    const { scope } = await stage.start({}, { ...pi, ...change });
    await scope.close();
    return await readFile(asked, "utf8");
  };
  const prepare = (preparation: Preparation) =>
    pi.prepare({ ...preparation, searchPath: `${programs}:${preparation.searchPath}` });

  expect(await start({ prepare })).toBe("");
  // The control: the adapter does search where it finds a Pi that tells its version.
  const unguarded = (preparation: Preparation) => {
    const { environment, ...prepared } = prepare(preparation);
    return { ...prepared, environment: { ...environment, PATH: `${programs}:${preparation.searchPath}` } };
  };
  expect(await start({ prepare: unguarded })).toMatch(/^pi --version\nnpm view /);
});

it("compiles Pi once for all of its starts, and starts it with that", { timeout: 120_000 }, async () => {
  const data = await mkdtemp(join(tmpdir(), "ambit-pi-"));
  // An agent that is ending may still write there.
  onTestFinished(() => rm(data, { recursive: true, force: true, maxRetries: 5 }));
  vi.stubEnv("XDG_DATA_HOME", data);
  onTestFinished(() => void vi.unstubAllEnvs());
  const located = locateProgram(pi, { command: undefined, folder });
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const compilation = new Compilation(pi);
  expect(compilation.done(located)).toBeUndefined();
  await Promise.all([compilation.begin(located, log), compilation.begin(located, log)]);
  const code = compilation.done(located);
  // Made once, though it was asked for twice.
  expect(await readdir(join(data, "ambit/agents/pi/.compiled"))).toHaveLength(1);
  const enable = code?.enable ?? "";
  const used = join(data, "used");
  await appendFile(
    enable,
    `require("node:fs").appendFileSync(${JSON.stringify(used)}, process.pid + "\\n");`,
  );
  await writeFile(used, "");
  const stage = await AgentStage.open(pi);
  onTestFinished(() => stage.close());
  const starts = async () => {
    const { agent, scope } = await stage.start();
    await eventsOf(agent, turnOf({ prompt: "[[say hi]]" }));
    await scope.close();
    return (await readFile(used, "utf8")).trim().split("\n").length;
  };
  expect(await starts()).toBe(1);
  // Without it, as in a sandbox that was opened before: it starts all the same.
  await rm(enable);
  expect(await starts()).toBe(1);
});
