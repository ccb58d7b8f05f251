import { type FileHandle, mkdir, mkdtemp, open, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { maxReadBytes, type PathMapping, refusal, SafeSessionFiles } from "../../src/safe-fs.js";

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

test("a file that grows while it is read is refused, not read without limit", async () => {
  const mapping = await workspace();
  const file = join(mapping.host, "a");
  await writeFile(file, "small");
  const files = new SafeSessionFiles([mapping]);
  expect(Buffer.from(await files.read("/workspace/a")).toString()).toBe("small");
  const other = await open(file);
  const handles: Pick<FileHandle, "stat"> = Object.getPrototypeOf(other);
  await other.close();
  const { stat } = handles;
  const looked = vi.spyOn(handles, "stat").mockImplementation(async function (this: FileHandle) {
    const found = await stat.call(this);
    if (found.isFile()) await truncate(file, 2 * maxReadBytes);
    return found;
  });
  await expect(files.read("/workspace/a")).rejects.toMatchObject({
    message: `/workspace/a is larger than ${maxReadBytes} bytes`,
    concerns: "session",
  });
  looked.mockRestore();
  await truncate(file, maxReadBytes);
  expect((await files.read("/workspace/a")).length).toBe(maxReadBytes);
});

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

test("an exhausted quota is the session's own, although Node.js has no name for it", () => {
  const exhausted = Object.assign(new Error("Unknown system error -122"), {
    code: "Unknown system error -122",
    errno: -constants.errno.EDQUOT,
  });
  expect(refusal("/workspace/a", exhausted)).toMatchObject({
    message: "/workspace/a can't be reached without following links: EDQUOT",
    concerns: "session",
  });
});
