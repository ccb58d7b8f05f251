import { spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import Docker from "dockerode";
import { expect, it, onTestFinished } from "vitest";
import { dockerEngine, unavailableReason } from "../src/index.js";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** A clone with packages that were installed before, and without a lockfile or sources: nothing can be built from it. */
async function folderWithPackages(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-dockerfile-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const files = {
    "package.json": "{}",
    ".cache/container/package.json": "{}",
    ".cache/container/node_modules/ambit/bin/ambit.mjs": "",
    "deploy/postgres.config.mjs": "",
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  for (const name of ["Dockerfile", ".dockerignore"])
    await copyFile(join(repository, name), join(folder, name));
  return folder;
}

/** What Docker's builder before BuildKit prints, which executes every stage. */
async function build(folder: string, packages: string): Promise<string> {
  const { socket, image } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const tag = `ambit-dockerfile:${packages}-${process.pid}`;
  const context = spawn("tar", ["-C", folder, "-c", "."], { stdio: ["ignore", "pipe", "inherit"] });
  const output = await docker.buildImage(context.stdout, {
    t: tag,
    version: "1",
    networkmode: "none",
    buildargs: { BASE_IMAGE: image, PACKAGES: packages },
  });
  const said = await text(output);
  const made = await docker.listImages({ filters: { reference: [tag] } });
  if (made.length > 0) await docker.getImage(tag).remove({ force: true });
  return said;
}

it("the Dockerfile takes prebuilt packages without building anything, also without BuildKit", async (context) => {
  const reason = unavailableReason("runc");
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const folder = await folderWithPackages();
  const said = await build(folder, "prebuilt");
  expect(said).not.toContain('"error"');
  expect(said).toContain("Successfully tagged");
  // For comparison, building needs the lockfile, which isn't here.
  expect(await build(folder, "build")).toContain("returned a non-zero code");
});
