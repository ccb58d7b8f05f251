import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describeStore } from "@ambit/testkit/vitest";

// Each test gets a database of its own. Two processes write to it, one is killed, and its schema changes.
describeStore("sample", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sample-"));
  const file = join(folder, "runs.sqlite");
  return {
    // Built, since other processes import it.
    module: new URL("../dist/index.js", import.meta.url).href,
    config: { file },
    // A file has no connection that could drop.
    drop: async () => {},
    setSchema: async (version) => {
      const database = new DatabaseSync(file);
      database.exec(`PRAGMA user_version = ${version}`);
      database.close();
    },
    fullReason: "no disk is filled here",
    close: () => rm(folder, { recursive: true, force: true }),
  };
});
