import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Place, SessionFiles } from "../../src/beneath/index.js";

async function workspace(): Promise<Place> {
  const outside = await mkdtemp(join(tmpdir(), "ambit-beneath-"));
  onTestFinished(() => rm(outside, { recursive: true }));
  return { inside: "/workspace", outside };
}

test.each<[string, (outside: string) => Promise<unknown>]>([
  ["a link", (outside) => symlink("/", join(outside, "a"))],
  ["a file", (outside) => writeFile(join(outside, "a"), "")],
])(
  "%s in the way is the session's own doing, and the message names nothing of the host",
  async (_what, make) => {
    const place = await workspace();
    await make(place.outside);
    const failure = new SessionFiles([place]).write([{ path: "/workspace/a/b", content: "" }]);
    await expect(failure).rejects.toMatchObject({
      message: "/workspace/a can't be reached without following links: a link or a file stands in its way",
      concerns: "session",
    });
  },
);

test("a folder where a file should be: likewise", async () => {
  const place = await workspace();
  await mkdir(join(place.outside, "a", "b"), { recursive: true });
  await expect(
    new SessionFiles([place]).write([{ path: "/workspace/a", content: "" }]),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/^\/workspace\/a can't be written: E[A-Z]+$/),
    concerns: "session",
  });
});
