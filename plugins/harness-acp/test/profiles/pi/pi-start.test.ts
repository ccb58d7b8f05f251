import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { pi } from "../../../src/profiles/pi.js";
import type { Preparation, Profile } from "../../../src/profiles/profile.js";
import { AgentStage } from "../../support/agent-stage.js";

it("starts Pi without a search for updates, where the image's PATH has pi and npm", {
  timeout: 60_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-pi-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const asked = join(folder, "asked");
  for (const name of ["pi", "npm"]) {
    await writeFile(join(folder, name), `#!/bin/sh\necho ${name} "$@" >> '${asked}'\necho 0.0.1\n`);
    await chmod(join(folder, name), 0o755);
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
    pi.prepare({ ...preparation, searchPath: `${folder}:${preparation.searchPath}` });

  expect(await start({ prepare })).toBe("");
  // The control: the adapter does search where it finds a Pi that tells its version.
  const unguarded = (preparation: Preparation) => {
    const { environment, ...prepared } = prepare(preparation);
    return { ...prepared, environment: { ...environment, PATH: `${folder}:${preparation.searchPath}` } };
  };
  expect(await start({ prepare: unguarded })).toMatch(/^pi --version\nnpm view /);
});
