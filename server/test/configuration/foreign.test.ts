import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { findConfiguration, refuseForeign } from "../../src/configuration/load.js";

async function configured(): Promise<{ folder: string; file: string }> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-foreign-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "ambit.config.mjs");
  await writeFile(file, "export default {};");
  return { folder, file };
}

it("root doesn't run another user's configuration, unless it is named", async (context) => {
  if (process.getuid?.() !== 0) context.skip("host: only root can give a file to another user");
  const { folder, file } = await configured();
  expect(findConfiguration(undefined, folder)).toBe(file);
  await chown(file, 12_345, 12_345);
  expect(() => findConfiguration(undefined, folder)).toThrow(/belongs to another user.*add --config/s);
  expect(findConfiguration(file, folder)).toBe(file);
  expect(() => refuseForeign(file, 0, { SUDO_UID: "12345" })).not.toThrow();
  await chown(file, 0, 0);
  await chown(folder, 12_345, 12_345);
  expect(() => findConfiguration(undefined, folder)).toThrow(/belongs to another user/);
});

it("an ordinary user may run any", async () => {
  const { file } = await configured();
  expect(() => refuseForeign(file, 12_345, {})).not.toThrow();
});
