import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { imageArchive } from "@ambit/test-machine";
import { type OwnCluster, systemPath } from "../../src/index.js";

const execute = promisify(execFile);
const repository = fileURLToPath(new URL("../../../..", import.meta.url));
const packages = join(repository, ".cache/container");

export const runnerImage = { repository: "ambit.local/runner", tag: "tests" };

/** What the Dockerfile's last stage says, which isn't built here: there is no registry for its base image. */
async function dockerfileSettings(): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(join(repository, "Dockerfile"), "utf8");
  const value = (instruction: string) => {
    const found = new RegExp(`^${instruction} (.+)$`, "gm");
    const last = [...text.matchAll(found)].at(-1)?.[1];
    if (last === undefined) throw new Error(`the Dockerfile has no ${instruction}`);
    return last;
  };
  return {
    Entrypoint: JSON.parse(value("ENTRYPOINT")),
    Cmd: JSON.parse(value("CMD")),
    Env: [systemPath, ...value("ENV").split(" ")],
    User: value("USER"),
    WorkingDir: value("WORKDIR"),
  };
}

/** Ambit's packages as a registry's users have them. In CI the check of the packages creates them while tests start. */
async function installPackages(): Promise<void> {
  if (process.env.CI) {
    const deadline = Date.now() + 120_000;
    while (!existsSync(join(packages, "package.json"))) {
      if (Date.now() > deadline)
        throw new Error("no .cache/container: node scripts/packages/install-packages.mjs .cache/container");
      await sleep(200);
    }
    return;
  }
  const script = join(repository, "scripts/packages/install-packages.mjs");
  await execute(process.execPath, [script, packages], { cwd: repository });
}

/** Imports the image of a runner: the sandboxes' one, which the cluster has, and the packages above it. */
export async function importRunnerImage(
  own: OwnCluster,
  name = `${runnerImage.repository}:${runnerImage.tag}`,
): Promise<void> {
  const [below, settings] = await Promise.all([imageArchive(), dockerfileSettings(), installPackages()]);
  const folder = await mkdtemp(join(tmpdir(), "ambit-runner-image-"));
  try {
    const archive = join(folder, "packages.tar");
    const place = ["--transform", "flags=rSh;s,^\\.,./opt/ambit,"];
    await execute("tar", [
      ...["--owner=0", "--group=0", "--numeric-owner", "--mode=go=u-w", ...place],
      ...["-C", packages, "-cf", archive, "."],
    ]);
    await own.importImage({ name, root: { archive }, below: [below], command: [], settings });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
