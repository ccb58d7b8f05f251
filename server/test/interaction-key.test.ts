import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "@ambit/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultKeyFile, earlierKey, interactionKey, namedInteractionKey } from "../src/key-files.js";

let folder: string;
let warnings: unknown[];
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (fields) => warnings.push(fields),
  error: () => {},
};
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-key-"));
  warnings = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const bytesOf = async (file: string) => (await interactionKey(file, log)()).export().toString("hex");

describe("interactionKey", () => {
  it("is created once, readable by the runner's user only, and read by every runner", async () => {
    const file = join(folder, "data", "interaction.key");
    const keys = await Promise.all(Array.from({ length: 8 }, () => bytesOf(file)));
    expect(new Set(keys)).toHaveLength(1);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(file, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
    expect(await readdir(join(folder, "data"))).toEqual(["interaction.key"]);
    expect(await bytesOf(file)).toBe(keys[0]);
    expect(warnings).toEqual([]);
  });

  it("may be shared among replicas by the operator", async () => {
    const file = join(folder, "shared");
    await writeFile(file, `${"s".repeat(40)}\n`, { mode: 0o600 });
    await symlink(file, join(folder, "mounted"));
    expect(await bytesOf(join(folder, "mounted"))).toBe(Buffer.from("s".repeat(40)).toString("hex"));
  });

  it.each([
    ["that everybody can read", "s".repeat(40), 0o644, "chmod 600"],
    ["that is too short", "short", 0o600, "write a longer key"],
    ["that is no key", "s".repeat(5_000), 0o600, "it is no key"],
  ])("doesn't trust a file %s: says so, and keeps a key in memory", async (_what, content, mode, reason) => {
    const file = join(folder, "bad");
    await writeFile(file, content);
    await chmod(file, mode);
    const key = interactionKey(file, log);
    const first = await key();
    expect(first.symmetricKeySize).toBe(32);
    expect(await key()).toBe(first);
    expect(warnings).toMatchObject([{ error: { message: expect.stringContaining(reason) } }]);
    expect(await readFile(file, "utf8")).toBe(content);
  });

  it("refuses a configured file that can't be used", async () => {
    const file = join(folder, "named");
    await writeFile(file, "short", { mode: 0o600 });
    await expect(namedInteractionKey(file)).rejects.toThrow(
      `interactions.keyFile: can't be used: ${file} holds fewer than 32 characters`,
    );
    await writeFile(file, "k".repeat(32), { mode: 0o600 });
    const named = await namedInteractionKey(file);
    expect(await named()).toBe(await named());
  });

  it("isn't made in a place of a configured file that isn't there", async () => {
    const file = join(folder, "mistyped");
    await expect(namedInteractionKey(file)).rejects.toThrow(
      `there is no file ${file}: name the one that all replicas share, or make it: (umask 077; openssl rand`,
    );
    expect(await readdir(folder)).toEqual([]);
  });

  it("isn't made anew where an earlier one isn't there, since that would decrypt nothing", async () => {
    const file = join(folder, "earlier");
    const refused = earlierKey("workspace.earlierKeyFiles[0]", file);
    await expect(refused).rejects.toThrow(
      `workspace.earlierKeyFiles[0]: can't be used: there is no file ${file}: put that key back, or leave it out`,
    );
    await expect(refused).rejects.not.toThrow("openssl");
  });

  it("is in the data folder by default", () => {
    expect(defaultKeyFile({}, 0)).toBe("/var/lib/ambit/interaction.key");
    expect(defaultKeyFile({ XDG_STATE_HOME: "/state" }, 1_000)).toBe("/state/ambit/interaction.key");
  });
});
