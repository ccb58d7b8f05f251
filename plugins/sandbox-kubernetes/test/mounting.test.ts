// needs: jail
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { mountingSteps, openingSteps, type PodMounts, type Step, stepsProgram } from "../src/enter.js";
import { inPod, noPod } from "./support/user-namespace.js";

const architecture = process.arch;
let folder: string;
let mounts: PodMounts;

beforeAll(async () => {
  // Not below /tmp, which is covered inside.
  folder = await mkdtemp("/var/tmp/ambit-mounts-");
  await chmod(folder, 0o755);
  const at = (name: string) => join(folder, name);
  for (const name of ["disk", "memory"]) await mkdir(at(name));
  await writeFile(at("disk/of-the-image"), "");
  await writeFile(at("own"), "own names\n");
  await writeFile(at("names"), "the cluster's names\n");
  mounts = {
    onDisk: [at("disk")],
    inMemory: [{ path: at("memory"), sizeMb: 3, mode: "1770" }],
    files: [{ from: at("own"), to: at("names") }],
  };
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function program(name: string, steps: readonly Step[]): Promise<string> {
  if (!isSeccompArchitecture(architecture)) throw new Error("unknown machine");
  const path = join(folder, name);
  await writeFile(path, stepsProgram(architecture, steps));
  await chmod(path, 0o755);
  return path;
}

/** The image is read-only from the start, as the runtime mounts it. */
const look = `mount -o remount,bind,ro /; cd "$1"; opening=$2; mounting=$3
"$opening" /bin/sh -c 'grep -oE " / / r[ow]" /proc/self/mountinfo && exec "$0" /bin/sh -c :' "$mounting" || exit
ls disk; cat names; stat -c %a memory; df -m --output=size memory | tail -1
grep -oE " $1/(disk|memory|names) rw[a-z,]*" /proc/self/mountinfo`;

describeUnless(noPod)("a pod's own mounts", () => {
  const steps = () => (isSeccompArchitecture(architecture) ? mountingSteps(architecture, mounts) : []);
  const seen = async (mounting: readonly Step[]) => {
    if (!isSeccompArchitecture(architecture)) throw new Error("unknown machine");
    const opening = await program("opening", openingSteps(architecture).slice(-1));
    const argv = ["/bin/sh", "-c", look, "sh", folder, opening, await program("mounting", mounting)];
    return await inPod(argv).catch((error: unknown) => `it ends: ${String(Object(error).stdout).trim()}`);
  };

  it("keep what the image has, or are empty folders of a size, or other files", async () => {
    const lines = (await seen(steps())).trim().split("\n");
    expect(lines.map((line) => line.trim())).toEqual([
      "/ / rw",
      "of-the-image",
      "own names",
      "1770",
      "3",
      expect.stringMatching(/\/disk rw/),
      expect.stringMatching(/\/memory rw,nosuid,nodev/),
      expect.stringMatching(/\/names rw/),
    ]);
  });

  it("are each seen to be missing", async () => {
    const whole = await seen(steps());
    for (const [index, { failure }] of steps().entries())
      expect(await seen(steps().filter((_step, at) => at !== index)), failure).not.toBe(whole);
    expect(steps()).toHaveLength(3);
  });

  it("end with a reason where one can't be made", async () => {
    const missing = { ...mounts, onDisk: [join(folder, "nowhere")] };
    const failing = isSeccompArchitecture(architecture) ? mountingSteps(architecture, missing) : [];
    expect(await seen(failing)).toMatch(/nowhere can't be mounted with what the image has there/);
  });
});
