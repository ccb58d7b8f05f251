import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { syntaxErrorPlace } from "../../src/configuration/syntax-error.js";

const broken = "export default {\n  server: {}\n  limits: {},\n};";

describe("the place of a syntax error", () => {
  it.each([
    ["the module itself", "main.mjs", { "main.mjs": broken }, "main.mjs:3"],
    [
      "a module that it imports",
      "main.mjs",
      { "main.mjs": 'import "./other.mjs";\nexport default {};', "other.mjs": broken },
      "other.mjs:3",
    ],
    ["none, where all parse", "main.mjs", { "main.mjs": "export default {};" }, undefined],
  ])("is in %s", async (_what, main, files, place) => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-syntax-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    expect(await syntaxErrorPlace(join(folder, main))).toBe(place && join(folder, place));
  });

  it("is part of what a command says about a plugin that can't be imported", async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-syntax-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "clock.mjs"), broken);
    await writeFile(join(folder, "ambit.config.json"), '{"plugins":["./clock.mjs"]}');
    // In a process of its own: the test runner imports modules in its own way.
    const program = fileURLToPath(new URL("../../bin/ambit.mjs", import.meta.url));
    const { stderr, exitCode } = await execa(process.execPath, [program, "plugins"], {
      cwd: folder,
      reject: false,
    });
    expect({ stderr, exitCode }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining(`./clock.mjs: can't be imported (${join(folder, "clock.mjs")}:3: `),
    });
  });
});
