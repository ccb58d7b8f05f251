import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { readabilityOf } from "../../../src/confined/files/required-paths.js";
import { fixFor } from "../../../src/probe/probe.js";
import { temporaryFolder } from "../../support/specs.js";

/** An agent as a package manager leaves it. */
async function makeAgent(): Promise<string> {
  const agent = join(await temporaryFolder(), "agent");
  await mkdir(join(agent, "dist"), { recursive: true });
  for (const folder of [agent, join(agent, "dist")]) await chmod(folder, 0o755);
  for (const file of ["package.json", "dist/main.js", "notes.txt"]) {
    await writeFile(join(agent, file), "{}");
    await chmod(join(agent, file), 0o644);
  }
  return agent;
}

const of = (path: string) => readabilityOf([{ path, what: "The agent" }]);

describe("an agent's files, for a session's own user", () => {
  test.each([
    ["", 0o700],
    ["dist", 0o700],
    ["dist", 0o744],
    ["dist/main.js", 0o600],
    ["package.json", 0o640],
  ])("can't be read where %j has the mode %o", async (closed, mode) => {
    const agent = await makeAgent();
    await chmod(join(agent, closed), mode);
    expect(of(agent)).toEqual({
      reason: `The agent can't be read by a session's own user: ${join(agent, closed)} has the mode 0${mode.toString(8)}, as an umask of 077 leaves it`,
      fix: `chmod -R go+rX ${agent}`,
    });
  });

  it("can be read although what isn't a program is private, and so are its parents", async () => {
    const agent = await makeAgent();
    await chmod(join(agent, "notes.txt"), 0o600);
    await mkdir(join(agent, ".cache"), { mode: 0o700 });
    await mkdir(join(agent, "logs"), { mode: 0o700 });
    await chmod(join(agent, ".."), 0o700);
    expect(of(agent)).toBe(true);
    expect(of(join(agent, "missing"))).toBe(true);
  });

  it("are mended by one command for all packages of one folder", async () => {
    const folder = join(await temporaryFolder(), "node_modules");
    const paths = ["one", "two"].map((name) => ({ path: join(folder, name), what: "The agent" }));
    for (const { path } of paths) await mkdir(path, { recursive: true, mode: 0o700 });
    expect(readabilityOf(paths)).toMatchObject({ fix: `chmod -R go+rX ${folder}` });
  });

  it("are mended as the reason of a jail that didn't open says", () => {
    expect(
      fixFor(new Error("Node.js can't be read by a session's own user: /a b has the mode 0700, as")),
    ).toBe("chmod -R go+rX /a b");
  });
});
