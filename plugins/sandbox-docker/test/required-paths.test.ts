import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { requireOutside } from "../src/open/start-container.js";

async function folders(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-required-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await Promise.all(
    ["srv/state", "agents", "srv/agent"].map((path) => mkdir(join(folder, path), { recursive: true })),
  );
  await symlink(join(folder, "srv"), join(folder, "agents/linked"));
  return folder;
}

describe("what an agent needs", () => {
  it.each(["srv", "srv/", "srv/state", "srv/state/", "", "agents/linked"])(
    "is never mounted from '%s', in which Ambit keeps its data",
    async (path) => {
      const folder = await folders();
      const paths = [{ path: `${folder}/${path}`, what: "the agent" }];
      await expect(requireOutside(join(folder, "srv/state"), paths)).rejects.toThrow(
        "the agent can't be mounted: its folder contains Ambit's own data",
      );
      // The data folder may be a link too.
      await expect(requireOutside(join(folder, "agents/linked/state"), paths)).rejects.toThrow("own data");
    },
  );

  it("is mounted from a folder beside it, or one that doesn't exist", async () => {
    const folder = await folders();
    const paths = ["srv/agent", "agents", "none"].map((path) => ({
      path: join(folder, path),
      what: "the agent",
    }));
    await expect(requireOutside(join(folder, "srv/state"), paths)).resolves.toBeUndefined();
  });
});
