import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { KeptOutputs } from "../src/index.js";
import { memoryBlobs } from "./memory-blobs.js";

const piece = Buffer.alloc(65_536);
const size = 1_000 * piece.length;

it("a reader of an archive that leaves in the middle leaves no file open behind", async () => {
  let opened = 0;
  let closed = 0;
  async function* content() {
    opened += 1;
    try {
      for (let count = 0; count < 1_000; count += 1) yield piece;
    } finally {
      closed += 1;
    }
  }
  const files = ["one", "two"].map((path) => ({ path, name: path, size, sha256: "", executable: false }));
  const blobs = memoryBlobs();
  const manifest = Readable.from([Buffer.from(JSON.stringify({ version: 1, createdAt: 0, files }))]);
  await blobs.put("run", "manifest", manifest);
  const { get } = blobs;
  const kept = await KeptOutputs.of("run", {
    ...blobs,
    get: (owner, name) =>
      name === "manifest" ? get(owner, name) : Promise.resolve({ size, content: content() }),
  });
  // This one isn't read.
  kept?.archive().destroy();
  for await (const bytes of kept?.archive() ?? []) {
    expect(bytes).toBeInstanceOf(Buffer);
    if (opened === 1) break;
  }
  expect(opened).toBe(1);
  await expect.poll(() => closed).toBe(1);
});
