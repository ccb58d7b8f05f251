import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type CompiledCode, compileAhead } from "../../src/installation/compile-ahead.js";

const run = promisify(execFile);

describe("an agent's code, compiled ahead", { timeout: 60_000 }, () => {
  let folder: string;
  let code: CompiledCode;

  /** Modules that write a file when they are evaluated, each in another way, as a hostile package might. */
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-compiled-test-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const mark = (name: string) => JSON.stringify(join(folder, "ran", name));
    const writes = (name: string) =>
      `import { writeFileSync } from "node:fs"; writeFileSync(${mark(name)}, "");`;
    await mkdir(join(folder, "ran"));
    const sources = {
      "plain.js": `${writes("plain")} export const used = () => 1;`,
      "awaits.js": `await null; ${writes("awaits")}`,
      "imports.js": `import "./plain.js"; import "./common.cjs"; import "./awaits.js"; ${writes("imports")}`,
      "common.cjs": `require("node:fs").writeFileSync(${mark("common")}, "");`,
      "broken.js": "export const = 1;",
      "lacks.js": `import "./nowhere.js"; ${writes("lacks")}`,
    };
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    for (const [name, source] of Object.entries(sources)) await writeFile(join(folder, name), source);
    const compiled = join(folder, "compiled", "key");
    const files = Object.keys(sources).map((name) => join(folder, name));
    code = { folder: compiled, enable: join(compiled, "enable.cjs"), files };
  });

  const ran = () => readdirSync(join(folder, "ran")).sort();

  it("runs none of its modules, which imported as usual all run", async () => {
    await compileAhead(code, process.execPath, true);
    expect(ran()).toEqual([]);
    expect(existsSync(code.enable)).toBe(true);
    await run(process.execPath, [join(folder, "imports.js")]);
    expect(ran()).toEqual(["awaits", "common", "imports", "plain"]);
  });

  /** What Node.js says of the modules that it compiles, as this user. */
  async function log(uid: number | undefined): Promise<string> {
    await mkdir(join(folder, "tmp"));
    for (const open of ["tmp", "ran"]) await chmod(join(folder, open), 0o777);
    await chmod(folder, 0o755);
    const parameters = ["--require", code.enable, join(folder, "plain.js")];
    const env = { TMPDIR: join(folder, "tmp"), NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
    const { stderr } = await run(process.execPath, parameters, {
      env,
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    return stderr;
  }

  const accepted = /plain\.js was accepted/;

  it("isn't compiled again", async () => {
    await compileAhead(code, process.execPath, true);
    expect(await log(undefined)).toMatch(accepted);
    expect(ran()).toEqual(["plain"]);
  });

  it("isn't compiled again by another user", async (context) => {
    if (process.getuid?.() !== 0) context.skip("host: only root can start another user's process");
    await compileAhead(code, process.execPath, true);
    expect(await log(54_321)).toMatch(accepted);
    expect(ran()).toEqual(["plain"]);
  });

  it("is compiled again where its source has changed", async () => {
    await compileAhead(code, process.execPath, true);
    const source = await readFile(join(folder, "plain.js"), "utf8");
    await writeFile(join(folder, "plain.js"), source.replace("=> 1", "=> 2"));
    expect(await log(undefined)).not.toMatch(accepted);
    expect(ran()).toEqual(["plain"]);
  });

  it("leaves nothing half made if Node.js fails", async () => {
    await expect(compileAhead(code, "/bin/false", true)).rejects.toThrow("ended with 1");
    expect(readdirSync(join(folder, "compiled"))).toEqual([]);
  });
});
