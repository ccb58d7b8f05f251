import type * as promises from "node:fs/promises";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";

/** Writes files as a busy machine does: a file is there for a while before its content is. */
async function slowFiles(original: <Module>() => Promise<Module>) {
  const real = await original<typeof promises>();
  const writeFile = async (path: string, text: string, { flag, mode }: { flag: string; mode: number }) => {
    const handle = await real.open(path, flag, mode);
    await new Promise((go) => setTimeout(go, 50));
    await handle.writeFile(text);
    await handle.close();
  };
  return { ...real, writeFile };
}

it("runners that start at the same time in a new folder are of one host", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-replicas-"));
  // What another file of this worker has imported already would not be replaced.
  vi.resetModules();
  vi.doMock("node:fs/promises", slowFiles);
  onTestFinished(async () => {
    vi.doUnmock("node:fs/promises");
    vi.resetModules();
    await rm(folder, { recursive: true, force: true });
  });
  const { claimReplica } = await import("../src/index.js");
  const claims = Array.from({ length: 4 }, () => claimReplica(folder, "p"));
  const hosts = (await Promise.all(claims)).map(({ name }) => name.split("-")[0]);
  expect(new Set(hosts).size).toBe(1);
  const files = await readdir(folder);
  expect(files.filter((name) => name.startsWith("host-"))).toHaveLength(1);
});
