import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type PathMapping, SafeSessionFiles } from "../../src/safe-fs/index.js";

async function workspace(): Promise<PathMapping> {
  const host = await mkdtemp(join(tmpdir(), "ambit-beneath-"));
  onTestFinished(() => rm(host, { recursive: true }));
  return { guest: "/workspace", host };
}

test.each<[string, (host: string) => Promise<unknown>]>([
  ["a link", (host) => symlink("/", join(host, "a"))],
  ["a file", (host) => writeFile(join(host, "a"), "")],
])(
  "%s in the way is the session's own doing, and the message names nothing of the host",
  async (_what, make) => {
    const mapping = await workspace();
    await make(mapping.host);
    const failure = new SafeSessionFiles([mapping]).write([{ path: "/workspace/a/b", content: "" }]);
    await expect(failure).rejects.toMatchObject({
      message: "/workspace/a can't be reached without following links: there is a link or a file in the path",
      concerns: "session",
    });
  },
);

test("a folder instead of a file: the same", async () => {
  const mapping = await workspace();
  await mkdir(join(mapping.host, "a", "b"), { recursive: true });
  await expect(
    new SafeSessionFiles([mapping]).write([{ path: "/workspace/a", content: "" }]),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/^\/workspace\/a can't be written: E[A-Z]+$/),
    concerns: "session",
  });
});
