import { mkdir, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makePassage } from "../../src/folders/data-folder.js";
import { temporaryFolder } from "../support/specs.js";

test("others may pass through it but not list it", async () => {
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
