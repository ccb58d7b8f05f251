import { mkdir, stat, symlink } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { defaultDataFolder, makePassage } from "../../src/folders/data-folder.js";
import { temporaryFolder } from "../support/specs.js";

describe("the default data folder", () => {
  test.each([
    [{}, 0, "/var/lib/ambit"],
    [{ XDG_STATE_HOME: "/state" }, 0, "/var/lib/ambit"],
    [{ XDG_STATE_HOME: "/state" }, 1000, "/state/ambit"],
    [{ XDG_STATE_HOME: "relative" }, 1000, join(homedir(), ".local/state/ambit")],
    [{}, 1000, join(homedir(), ".local/state/ambit")],
  ])("%o as user %i is %s", (environment, uid, expected) => {
    expect(defaultDataFolder(environment, uid)).toBe(expected);
  });
});

test("others may pass through it and not list it", async () => {
  const folder = join(await temporaryFolder(), "a", "b");
  await makePassage(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o711);
});

test("a link in its place is refused", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "real"));
  await symlink(join(folder, "real"), join(folder, "link"));
  await expect(makePassage(join(folder, "link"))).rejects.toThrow(/isn't a folder of the runner's user/);
});
