// needs: jail
import { spawn } from "node:child_process";
import { chmod, chown, link, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type Boundary, SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, test } from "vitest";
import { scanHardLinks } from "../../../src/confined/files/workspace-rules.js";
import { limitReached, withoutHost } from "../../../src/confined/jail.js";
import { closed, openConfined, path, run, shell, specOf, temporaryFolder } from "../../support/specs.js";
import { isRoot, ordinaryUser, testAsRoot } from "../../support/user.js";

/** What the scripts write. Each runs in a separate jail of one session, under a runner of this user. */
async function turnsOf(
  user: typeof ordinaryUser | undefined,
  scripts: readonly string[],
  { role = "agent", boundary = closed }: { role?: "agent" | "tool"; boundary?: Boundary } = {},
): Promise<readonly string[]> {
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  if (user !== undefined) await chown(dataFolder, user.uid, user.gid);
  const { onDecision: _unused, log: _too, ...spec } = specOf({ boundary });
  const program = fileURLToPath(new URL("../../support/turns.mjs", import.meta.url));
  const texts = [{ dataFolder }, spec, scripts, role].map((part) => JSON.stringify(part));
  const child = spawn(process.execPath, [program, ...texts], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: "/",
    ...user,
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

const users = [
  ["this user", undefined],
  ...(isRoot ? ([["an ordinary user", ordinaryUser]] as const) : []),
] as const;

/** What an agent may do to its workspace in one turn: each of these once kept the next jail from starting. */
const deeds: readonly (readonly [string, string, string, string])[] = [
  ["close the workspace itself", "echo x > file; chmod 000 /workspace", "cat file", "x\n"],
  ["close its home", "echo x > $HOME/file; chmod 000 $HOME", "cat $HOME/file", "x\n"],
  ["close a folder", "mkdir -p one/two; chmod 000 one", "ls", "one\n"],
  [
    "close the folder of a kept setting",
    "mkdir -p .git/hooks; chmod 000 .git",
    "chmod 700 .git; touch .git/hooks/x 2>/dev/null || echo kept",
    "kept\n",
  ],
  [
    "use names that aren't UTF-8",
    "mkdir -p $(printf '\\377')/d; touch $(printf '\\377')/d/$(printf '\\376')",
    "ls | wc -l",
    "1\n",
  ],
  [
    "nest folders deeper than a path can be",
    "name=$(printf 'd%.0s' $(seq 200)); for i in $(seq 30); do mkdir $name && cd $name; done; touch end",
    "ls | wc -c",
    "201\n",
  ],
];

describe.each(users)("run by %s, the next jail starts after an agent did this", (_name, user) => {
  test.each(deeds)("%s", async (_what, deed, next, expected) => {
    expect(await turnsOf(user, [deed, next])).toEqual(["", expected]);
  });
});

describe.each(users)("run by %s, between the jails of two tools", (_name, user) => {
  test("a setting stays protected in a folder that was closed", async () => {
    const close = "mkdir -p .git/hooks; chmod 000 .git/hooks .git";
    const attack = "chmod 700 .git .git/hooks; touch .git/hooks/x 2>/dev/null || echo kept";
    expect(await turnsOf(user, ["true", close, attack], { role: "tool" })).toEqual(["", "", "kept\n"]);
  });

  test("a path of the boundary that was closed is accessible again", async () => {
    const boundary = { ...closed, filesystem: { ...closed.filesystem, writable: ["out"] } };
    const scripts = ["echo x > out/file; chmod 000 out", "chmod 700 out; cat out/file; touch y || echo held"];
    expect(await turnsOf(user, scripts, { boundary })).toEqual(["", "x\nheld\n"]);
  });
});

describe("hard links that lead outside", () => {
  test("are found under names that aren't UTF-8 and in closed folders, and become separate copies", async () => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    const sandbox = await openConfined({}, { config: { dataFolder, hardLinks: "copy" } });
    const [runner = ""] = await readdir(join(dataFolder, "runners"));
    const sessions = await readdir(join(dataFolder, "runners", runner));
    const session = sessions.find((name) => name.startsWith("test-")) ?? "";
    const workspace = join(dataFolder, "runners", runner, session, "workspace");
    await writeFile(join(dataFolder, "outside"), "outside\n");
    await chmod(join(dataFolder, "outside"), 0o666);
    await run(sandbox, shell("mkdir closed"));
    const name = Buffer.concat([Buffer.from(`${workspace}/closed/`), Buffer.from([0xff])]);
    await link(join(dataFolder, "outside"), name);
    await run(sandbox, shell("touch one; ln one two; chmod 000 closed"));
    expect((await scanHardLinks(workspace)).outsideLinks).toEqual([{ links: 2, paths: ["closed/\u00ff"] }]);
    const changed = await run(
      sandbox,
      shell("chmod 700 closed; echo changed > closed/$(printf '\\377'); cat closed/*"),
      {
        role: "agent",
      },
    );
    expect(changed.stdout).toBe("changed\n");
    expect(await readFile(join(dataFolder, "outside"), "utf8")).toBe("outside\n");
  });
});

describe("a failed start reports the reason, and nothing about the host", () => {
  testAsRoot("a limit of the session is named", async () => {
    const sandbox = await openConfined({ resources: { processes: 20 } });
    const hold = { argv: shell("read _"), env: { PATH: path } };
    const started = await Promise.allSettled(Array.from({ length: 20 }, () => sandbox.spawn(hold)));
    const failures = started.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(failures.length).toBeGreaterThan(0);
    for (const failure of failures) {
      expect(failure).toBeInstanceOf(SandboxFailed);
      expect(failure.message).toMatch(
        /the session's limit of 20 processes \(resources.processes\) is reached/,
      );
      expect(failure.concerns).toBe("session");
    }
  });

  test("the error of a jail that can't be opened names no folder of the host and no runner's mark", async () => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    const sandbox = await openConfined({}, { config: { dataFolder } });
    const [key = ""] = await readdir(join(dataFolder, "runners"));
    await chmod(join(dataFolder, "runners", key, "seccomp.bpf"), 0o644);
    await writeFile(join(dataFolder, "runners", key, "seccomp.bpf"), "no filter");
    const failure = await sandbox.spawn({ argv: ["true"], env: { PATH: path } }).catch(String);
    expect(failure).toMatch(/The jail can't be opened: /);
    expect(failure).not.toContain(key);
    expect(failure).not.toContain(dataFolder);
  });

  test.each([
    [
      "bwrap: Can't find source path /data/runners/key/one/relocated/0",
      "bwrap: Can't find source path (the session's folder)/relocated/0",
    ],
    [
      "bwrap: Can't find source path /data/runners/key/sh",
      "bwrap: Can't find source path (the runner's folder)/sh",
    ],
    ["at /data/relocated", "at (the data folder)/relocated"],
    ["AMBIT_SANDBOX=key/one/3/: 1: Cannot fork", "sandbox: 1: Cannot fork"],
  ])("%s", (words, said) => {
    expect(withoutHost(words, { folder: "/data/runners/key/one", mark: "key/one/3/" })).toBe(said);
  });

  test.each([
    [
      { processes: 2, memory: 0 },
      { processes: 3, memory: 0 },
      /limit of 9 processes \(resources.processes\)/,
    ],
    [{ processes: 2, memory: 0 }, { processes: 2, memory: 1 }, /limit of 64 MiB \(resources.memoryMb\)/],
    [{ processes: 2, memory: 1 }, { processes: 2, memory: 1 }, undefined],
  ])("%o, then %o", (before, after, message) => {
    const limits = { processes: 9, memoryMb: 64 };
    const failure = limitReached("sh", limits, before, after, undefined);
    if (message === undefined) expect(failure).toBeUndefined();
    else expect(failure?.message).toMatch(message);
  });
});
