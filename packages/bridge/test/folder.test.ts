import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openBridged } from "./support/bridged.js";

it.for([
  { what: "refuses a folder that every user may rename", mode: 0o777, isRefused: true },
  { what: "takes one in a folder with the sticky bit", mode: 0o1777, isRefused: false },
])("$what", async ({ mode, isRefused }, context) => {
  if (process.getuid?.() !== 0) context.skip("host: users of their own need root");
  const folder = await mkdtemp(join(tmpdir(), "ambit-bridge-folder-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, mode);
  // For separate users: without them, all processes may do the same.
  const opened = openBridged({ in: folder, ownSystem: false, unprivileged: true });
  if (isRefused) await expect(opened).rejects.toThrow("every user may rename");
  else await (await opened)[Symbol.asyncDispose]();
});
