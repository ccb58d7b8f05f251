// needs: jail
import { existsSync } from "node:fs";
import { chmod, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@ambit/core/plugin";
import { expect, it, onTestFinished } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { startRunner } from "../support/runner.js";
import { closed, isRunning, scope, specOf, temporaryFolder } from "../support/specs.js";

const script = "echo precious > a.txt; sleep 900 & echo $!; wait";
const patience = { timeout: 60_000 };

/** A runner that has a session with a file, and another one of the same host. */
async function twoRunners(settings: object = {}) {
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const spec = specOf({ boundary: closed, fence: 1 });
  const config = { dataFolder, ...settings };
  const first = await startRunner(config, script, { spec: { id: spec.id, boundary: closed, fence: 1 } });
  const next = (): LocalSandbox => new LocalSandbox(configSchema.parse(config));
  const { remains = "" } = first;
  const open = async (backend: LocalSandbox, more: object = {}): Promise<Sandbox> => {
    const sandbox = await backend.open({ ...spec, fence: 2, remains, ...more }, scope);
    onTestFinished(() => sandbox.close());
    return sandbox;
  };
  return { dataFolder, first, next, open, id: spec.id, remains };
}

const textIn = async (sandbox: Sandbox) =>
  Buffer.from(await sandbox.readFile(`${sandbox.workspace}/a.txt`)).toString();

it(
  "files of a killed runner's session are the next one's, once, and its processes have ended",
  patience,
  async () => {
    const { first, next, open } = await twoRunners();
    await first.killWithWatch();
    const [one, two] = [next(), next()];
    const opened = await Promise.allSettled([open(one), open(two)]);
    const had = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(had).toHaveLength(1);
    const [sandbox] = had;
    if (sandbox === undefined) return;
    expect(await textIn(sandbox)).toBe("precious\n");
    expect(sandbox.evidence.uid).toBe(first.evidence.uid);
    expect(sandbox.remains).not.toBe(first.remains);
  },
);

it("of a runner that lives they are its own, as are those of another session", patience, async () => {
  const { first, next, open } = await twoRunners();
  await expect(open(next())).rejects.toThrow("The server that has them lives");
  expect(await isRunning(first.child.pid ?? 0)).toBe(true);
  await first.kill();
  await expect(open(next(), { id: "another" })).rejects.toThrow("another user");
  await expect(open(next(), { remains: '{"runner":"../../x","session":"y"}' })).rejects.toThrow("version");
  expect(await textIn(await open(next()))).toBe("precious\n");
});

it("they wait for some time, and are removed when nobody has come", patience, async () => {
  const { dataFolder, first, next, open, id } = await twoRunners({ takeoverMinutes: 0.02 });
  const folders = async () => {
    const runners = await readdir(join(dataFolder, "runners"));
    return runners.filter((key) => existsSync(join(dataFolder, "runners", key, id)));
  };
  await first.kill();
  const backend = next();
  const other = await backend.open(specOf({ boundary: closed }), scope);
  onTestFinished(() => other.close());
  expect(await folders()).toHaveLength(1);
  await expect.poll(folders, { timeout: 20_000 }).toEqual([]);
  // Their user is free only once they are gone.
  const reasons: string[] = [];
  const reason = async () => {
    reasons.push(await open(backend).then(() => "they were there", String));
    return reasons.at(-1);
  };
  await expect.poll(reason, { timeout: 20_000 }).toContain("aren't there any more");
  expect(reasons).not.toContain("they were there");
});

it("a session that was ended by its user leaves none", patience, async () => {
  const { first, next, open, remains } = await twoRunners();
  await first.kill();
  const backend = next();
  await backend.discardRemains(remains);
  await backend.discardRemains(remains);
  await expect(open(backend)).rejects.toThrow("aren't there any more");
});
