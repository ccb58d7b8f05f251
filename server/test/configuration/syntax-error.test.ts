import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { syntaxErrorLine } from "../../src/configuration/syntax-error.js";

describe("the line of a module's syntax error", () => {
  it.each([
    ["a missing comma", "export default {\n  server: {}\n  limits: {},\n};", "line 3: "],
    ["none, where the module itself parses", 'import "./other.mjs";\nexport default {};', ""],
  ])("is that of %s", async (_what, content, line) => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-syntax-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "ambit.config.mjs");
    await writeFile(file, content);
    expect(await syntaxErrorLine(file)).toBe(line);
  });
});
