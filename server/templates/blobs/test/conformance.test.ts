import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeBlobs } from "@ambit/testkit/vitest";
import { makeBlobs } from "../src/index.js";

// Each test gets an empty place, and ways to break it.
describeBlobs("sample", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sample-"));
  const aside = `${folder}-aside`;
  return {
    backend: makeBlobs({ folder }),
    faults: [
      {
        name: "a disk that was taken away",
        breaks: "content",
        begin: async () => {
          await rename(folder, aside);
          await writeFile(folder, "no folder");
          return async () => {
            await rm(folder);
            await rename(aside, folder);
          };
        },
      },
    ],
    close: () => rm(folder, { recursive: true, force: true }),
  };
});
