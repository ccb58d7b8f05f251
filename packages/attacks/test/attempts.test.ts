import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AttemptName, attempts, lookProgram, readLook } from "../src/inside/index.js";
import { probedBy } from "../src/standard-probe/index.js";

const names = Object.keys(attempts) as AttemptName[];

/** Not made here: they use up what this process has, or wait for an answer that nothing gives. */
const unmade: readonly AttemptName[] = ["memory", "processes", "cpu", "disk", "environments"];

async function lookWith(asked: Parameters<typeof lookProgram>[1]) {
  const [program, ...rest] = await lookProgram(process.execPath, asked);
  return readLook((await promisify(execFile)(program, rest)).stdout);
}

describe("the attempts inside", () => {
  it("are all in the program, which answers in the order that was asked for", async () => {
    const made = names.filter((name) => !unmade.includes(name));
    // Without parameters most are refused at once; an unknown one would end the program.
    const asked = Object.fromEntries(made.map((name) => [name, { try: name, limitMs: 100, ports: [] }]));
    expect(Object.keys(await lookWith(asked))).toEqual(made);
  });

  it("list of a hidden folder only what is beside the paths that are shown on purpose", async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-attempts-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, "versions", "node", "bin"), { recursive: true });
    const listed = async (...shown: string[]) =>
      (
        await lookWith({
          list: { try: "list", path: folder, shown: shown.map((name) => join(folder, name)) },
        })
      ).list;
    expect(await listed("versions/node")).toBe(null);
    expect(await listed()).toBe("versions");
    expect(await listed("versions/node/lib")).toBe(join(folder, "versions/node/bin"));
    await writeFile(join(folder, "versions", "key"), "secret");
    expect(await listed("versions/node")).toBe(join(folder, "versions/key"));
    expect(await listed("version")).toBe(join(folder, "versions"));
  });

  it("are never reported as refused when there is no such attempt", async () => {
    const unknown = { one: { try: "no such attempt" as AttemptName } };
    await expect(lookWith(unknown)).rejects.toThrow(/there is no attempt no such attempt/);
  });

  it("try every mechanism that the standard probe tries", () => {
    const tried = new Set(Object.values(attempts).flatMap(({ against }): readonly string[] => against));
    const probed = Object.entries(probedBy).filter(([, by]) => typeof by !== "string");
    const untried = probed.map(([name]) => name).filter((name) => !tried.has(name));
    // The runner itself tries these: nothing inside can.
    expect(untried).toEqual(["inbound port list", "inbound relay"]);
  });
});
