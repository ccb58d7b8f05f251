// needs: jail
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tryInside } from "@ambit/attacks/inside";
import type { Sandbox } from "@ambit/core/plugin";
import { expect, onTestFinished, test, vi } from "vitest";
import { resolveRequiredPaths } from "../../../src/confined/files/required-paths.js";
import {
  closed,
  confinedBackend,
  openConfined,
  run,
  scope,
  shell,
  specOf,
  temporaryFolder,
} from "../../support/specs.js";
import { testAsRoot } from "../../support/user.js";

/** An agent in a home that is closed to others, next to a secret. */
async function closedHome(): Promise<{ home: string; agent: string }> {
  const home = await temporaryFolder();
  const agent = join(home, "versions", "agent");
  await mkdir(agent, { recursive: true });
  await writeFile(join(agent, "run.sh"), "#!/bin/sh\necho runs\n");
  await chmod(join(agent, "run.sh"), 0o755);
  await writeFile(join(home, "versions", "secret"), "secret");
  await chmod(home, 0o700);
  return { home, agent };
}

test("an agent in a closed home is shown read-only at its path, without anything next to it", async () => {
  const { home, agent } = await closedHome();
  const sandbox = await openConfined({}, { requiredPaths: [{ path: agent, what: "The agent" }] });
  expect((await run(sandbox, [join(agent, "run.sh")])).stdout).toBe("runs\n");
  const script = `ls ${home}/versions; cat ${home}/versions/secret; echo x > ${agent}/run.sh; touch ${agent}/new; rm ${agent}/run.sh; echo ran`;
  expect((await run(sandbox, shell(script))).stdout).toBe("agent\nran\n");
  expect((await run(sandbox, [join(agent, "run.sh")])).stdout).toBe("runs\n");
  await sandbox.close();
  // A mount that was left on the host would show here.
  const { readFile } = await import("node:fs/promises");
  expect(await readFile("/proc/self/mountinfo", "latin1")).not.toContain(agent);
});

testAsRoot("an agent that a session's own user can't read is refused, before its sandbox opens", async () => {
  const { agent } = await closedHome();
  await chmod(join(agent, "run.sh"), 0o700);
  const requiredPaths = [{ path: agent, what: "The agent" }];
  await expect(openConfined({}, { requiredPaths })).rejects.toThrow(
    `The agent can't be read by a session's own user: ${agent}/run.sh has the mode 0700`,
  );
});

test("the probe takes an agent's folder for no reach into its home, and notices what is next to it", async () => {
  const { home, agent } = await closedHome();
  await chmod(home, 0o755);
  const looking = { probe: { node: process.execPath }, signal: AbortSignal.timeout(60_000) };
  const listed = async (sandbox: Sandbox) =>
    (await tryInside(sandbox, looking, { list: { try: "list", path: home, shown: [agent] } })).list;
  const agentOnly = await openConfined({}, { requiredPaths: [{ path: agent, what: "The agent" }] });
  expect(await listed(agentOnly)).toBe(null);
  const wholeHome = await openConfined({}, { requiredPaths: [{ path: home, what: "The home" }] });
  expect(await listed(wholeHome)).toBe(join(home, "versions/secret"));
});

test("a link leads to the same content at both paths", async () => {
  const { home, agent } = await closedHome();
  await symlink(agent, join(home, "current"));
  const sandbox = await openConfined(
    {},
    { requiredPaths: [{ path: join(home, "current"), what: "The agent" }] },
  );
  const script = `${home}/current/run.sh; ${agent}/run.sh; ls ${home}/versions`;
  expect((await run(sandbox, shell(script))).stdout).toBe("runs\nruns\nagent\n");
});

test("a version manager's folder in a closed home is shown with the links in it, named or followed", async () => {
  const { home, agent } = await closedHome();
  await symlink(agent, join(home, "versions", "current"));
  await symlink("current", join(home, "versions", "default"));
  const outside = await temporaryFolder();
  await chmod(outside, 0o755);
  await symlink(join(home, "versions"), join(outside, "manager"));
  const [versions, manager] = [join(home, "versions"), join(outside, "manager")];
  const scripts: readonly (readonly [mounts: string[], program: string])[] = [
    [[versions, `${versions}/current`], `${versions}/current`],
    [[`${versions}/default`, versions], `${versions}/default`],
    [[outside, manager], `${manager}/default`],
    [[`${manager}/default`, outside], `${manager}/default`],
    [[outside, `${manager}/current/run.sh`], `${manager}/current`],
  ];
  for (const [readOnlyMounts, folder] of scripts) {
    const sandbox = await openConfined({}, { config: { readOnlyMounts } });
    expect((await run(sandbox, [`${folder}/run.sh`])).stdout, readOnlyMounts.join()).toBe("runs\n");
  }
});

testAsRoot(
  "a path that the session's own user can't read is refused with the command that opens it",
  async () => {
    const { home } = await closedHome();
    await expect(openConfined({}, { config: { readOnlyMounts: [home] } })).rejects.toThrow(
      `A path of sandbox-local's \`readOnlyMounts\` at ${home} can't be used by a session's own user: let others read it (chmod -R o+rX ${home})`,
    );
  },
);

test("what a deployer makes visible is visible and read-only", async () => {
  const folder = await temporaryFolder();
  await chmod(folder, 0o777);
  await writeFile(join(folder, "tool"), "tool\n");
  const sandbox = await openConfined({}, { config: { readOnlyMounts: [folder] } });
  expect(
    (await run(sandbox, shell(`cat ${folder}/tool; echo x > ${folder}/new || echo refused`))).stdout,
  ).toBe("tool\nrefused\n");
});

test("the data folder stays hidden if one of its parents is shown", async () => {
  const { shown, covered } = await resolveRequiredPaths(
    [{ path: "/opt", what: "Tools" }],
    [],
    "/opt/ambit/data",
    undefined,
  );
  expect(shown).toEqual([{ path: "/opt", source: "/opt" }]);
  expect(covered).toEqual(["/opt/ambit/data"]);
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  const sandbox = await openConfined({}, { config: { dataFolder: folder, readOnlyMounts: [folder] } });
  const { stdout } = await run(sandbox, shell(`ls -A ${folder}; echo ran`));
  expect(stdout).toBe("ran\n");
});

test("a path of the system needs no mount, and the whole host can't be shown", async () => {
  const system = [{ kind: "folder", path: "/usr" }] as const;
  expect(
    await resolveRequiredPaths([{ path: "/usr/bin/env", what: "env" }], system, "/data", undefined),
  ).toEqual({
    shown: [],
    relocatedMounts: [],
    covered: [],
  });
  await expect(
    resolveRequiredPaths([{ path: "/", what: "All" }], system, "/data", undefined),
  ).rejects.toThrow(/whole host/);
  await expect(confinedBackend({ readOnlyMounts: ["relative"] })).rejects.toThrow(/absolute/);
});

test("the data folder stays hidden in a shown path, also if it is reached through a link", async () => {
  const [folder, shown] = [await temporaryFolder(), await temporaryFolder()];
  for (const path of [folder, shown]) await chmod(path, 0o755);
  await mkdir(join(shown, "data"));
  await chmod(join(shown, "data"), 0o711);
  await symlink(shown, join(folder, "link"));
  const config = { dataFolder: join(folder, "link", "data"), readOnlyMounts: [shown] };
  const sandbox = await openConfined({}, { config });
  expect((await run(sandbox, shell(`ls -a ${shown}/data ${folder} 2>/dev/null; echo ran`))).stdout).toBe(
    `${shown}/data:\n.\n..\nran\n`,
  );
});

testAsRoot("a backend looks at each required path once, for all of its sessions", async () => {
  const looked: string[] = [];
  vi.resetModules();
  vi.doMock("../../../src/confined/files/required-paths.js", async (original) => {
    const whole = await original<typeof import("../../../src/confined/files/required-paths.js")>();
    const look: typeof whole.readabilityOf = (paths) => {
      looked.push(...paths.map(({ path }) => path));
      return whole.readabilityOf(paths);
    };
    return { ...whole, readabilityOf: look };
  });
  onTestFinished(() => {
    vi.doUnmock("../../../src/confined/files/required-paths.js");
    vi.resetModules();
  });
  const { configSchema, LocalSandbox } = await import("../../../src/index.js");
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const backend = new LocalSandbox(configSchema.parse({ dataFolder }));
  const agent = await temporaryFolder();
  await chmod(agent, 0o755);
  const requiredPaths = [{ path: agent, what: "The agent" }];
  for (let session = 0; session < 2; session += 1)
    await (await backend.open(specOf({ boundary: closed, requiredPaths }), scope)).close();
  expect(looked.filter((path) => path === agent)).toHaveLength(1);
  expect(new Set(looked).size).toBe(looked.length);
});
