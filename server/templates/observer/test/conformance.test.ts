import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeObserver } from "@ambit/testkit/vitest";
import { Observer } from "../src/index.js";

// The kit lets it observe runs, whole ones and broken ones, and searches what it wrote for their credentials.
describeObserver("sample", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sample-"));
  const file = join(folder, "runs.ndjson");
  return {
    observer: new Observer(file),
    written: () => readFile(file, "utf8"),
    close: () => rm(folder, { recursive: true, force: true }),
  };
});
