// needs: jail
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Finding } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { skipWithout } from "../../../../scripts/vitest/skip-without.ts";
import { claims } from "../../src/claims.js";
import { fixFor, probeConfinement } from "../../src/probe/probe.js";
import { busy, confinedBackend, temporaryFolder } from "../support/specs.js";
import { isRoot, ordinaryUser, testAsRoot } from "../support/user.js";

const proven = (findings: readonly Finding[]) =>
  findings.filter((finding) => finding.proven).map(({ capability }) => capability);

/** A machine without any says so instead. */
const hasCgroups = existsSync("/sys/fs/cgroup/memory") || existsSync("/sys/fs/cgroup/cgroup.subtree_control");

const ofRoot = ["resources.memory", "resources.processes", "resources.cpu", "resources.disk"];

testAsRoot("as root this host proves every claim, and describes each trial", busy, async () => {
  skipWithout("cgroups");
  // A group's folder, as administrators make it.
  const shared = await temporaryFolder();
  await chmod(shared, 0o2755);
  const backend = await confinedBackend({ readOnlyMounts: [shared] });
  const findings = await backend.probe(AbortSignal.timeout(busy.timeout));
  expect(findings.filter((finding) => !finding.proven)).toEqual([]);
  expect(proven(findings).sort()).toEqual([...claims].sort());
  for (const finding of findings) expect(finding.proven && finding.how.length).toBeGreaterThan(20);
});

test("as an ordinary user it proves all claims but the limits, and names what those need", busy, async () => {
  const dataFolder = await temporaryFolder();
  if (isRoot) await chown(dataFolder, ordinaryUser.uid, ordinaryUser.gid);
  const program = `
    import { configSchema, LocalSandbox } from ${JSON.stringify(fileURLToPath(new URL("../../dist/index.js", import.meta.url)))};
    const backend = new LocalSandbox(configSchema.parse(${JSON.stringify({ dataFolder })}));
    console.log(JSON.stringify(await backend.probe(AbortSignal.timeout(${busy.timeout}))));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: "/",
    ...(isRoot ? ordinaryUser : {}),
  });
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
  });
  await once(child, "close");
  const findings: Finding[] = JSON.parse(text);
  expect(proven(findings).sort()).toEqual(claims.filter((claim) => !ofRoot.includes(claim)).sort());
  for (const finding of findings.filter(({ proven: is }) => !is)) {
    expect(finding).toMatchObject({
      proven: false,
      reason: expect.stringMatching(
        hasCgroups ? /limit can't be set/ : /has no \w+ cgroups|disk limit can't be set/,
      ),
      fix: hasCgroups ? expect.stringContaining("root") : expect.any(String),
    });
  }
  // Neither the host's folders nor the runner's key.
  expect(text).not.toMatch(/\/sys\/|[0-9a-f]{24}/);
  expect(await readdir(join(dataFolder, "runners"))).toEqual([]);
});

test("Node below root's home leaves the boundary proven", async (context) => {
  if (!isRoot) context.skip("host: only root can install Node below /root");
  const home = await mkdtemp(join(userInfo().homedir, ".ambit-test-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const node = join(home, "versions/node/bin/node");
  await mkdir(dirname(node), { recursive: true });
  await cp(await realpath(process.execPath), node);
  // As an installer leaves it, whatever this process's umask is.
  for (let path = node; path !== home; path = dirname(path)) await chmod(path, 0o755);
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const program = `
    import { configSchema, LocalSandbox } from ${JSON.stringify(fileURLToPath(new URL("../../dist/index.js", import.meta.url)))};
    const backend = new LocalSandbox(configSchema.parse(${JSON.stringify({ dataFolder })}));
    console.log(JSON.stringify(await backend.probe(AbortSignal.timeout(60_000), ["filesystem.host-hidden"])));`;
  const { stdout } = await promisify(execFile)(node, ["--input-type=module", "-e", program], { cwd: "/" });
  const findings: Finding[] = JSON.parse(stdout);
  expect(findings).toContainEqual(
    expect.objectContaining({ capability: "filesystem.host-hidden", proven: true }),
  );
});

test("no process of a probe outlives a runner that is killed without warning", async () => {
  const dataFolder = await temporaryFolder();
  const program = `
    import { configSchema, LocalSandbox } from ${JSON.stringify(fileURLToPath(new URL("../../dist/index.js", import.meta.url)))};
    const backend = new LocalSandbox(configSchema.parse(${JSON.stringify({ dataFolder })}));
    await backend.probe(AbortSignal.timeout(20_000));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: "ignore",
    cwd: "/",
  });
  const ended = once(child, "exit");
  let decoys: readonly number[] = [];
  while (decoys.length === 0 && child.exitCode === null) {
    decoys = childrenOf(child.pid ?? 0).filter((pid) => commandOf(pid) === "cat");
    await delay(1);
  }
  expect(decoys).toHaveLength(1);
  child.kill("SIGKILL");
  await ended;
  await vi.waitFor(() => expect(decoys.filter((pid) => commandOf(pid) === "cat")).toEqual([]), 30_000);
  await vi.waitFor(() => expect(readProcess("self/mountinfo")).not.toContain(dataFolder), 30_000);
});

const readProcess = (path: string) => {
  try {
    return readFileSync(`/proc/${path}`, "latin1");
  } catch {
    return ""; // Gone.
  }
};
const commandOf = (pid: number) => readProcess(`${pid}/comm`).trim();
const childrenOf = (pid: number) =>
  readProcess(`${pid}/task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);

test("if no jail starts, nothing is proven, and bubblewrap's message is the reason", async () => {
  const words =
    "The jail can't be opened: bwrap: No permissions to create new namespace, likely because the kernel does not allow it";
  const findings = await probeConfinement(
    () => Promise.reject(new SandboxFailed(words)),
    AbortSignal.timeout(1_000),
    [],
  );
  expect(findings.map(({ capability }) => capability).sort()).toEqual([...claims].sort());
  for (const finding of findings) {
    expect(finding).toEqual({
      capability: finding.capability,
      proven: false,
      reason: words,
      fix: expect.stringContaining("seccomp=unconfined"),
    });
  }
});

test.each([
  ["while it runs", () => AbortSignal.timeout(30)],
  ["before it begins", () => AbortSignal.abort(new Error("out of time"))],
])("a probe whose time is over %s settles, and names what it was still trying", async (_, makeSignal) => {
  const findings = await (await confinedBackend()).probe(makeSignal());
  expect(findings).toHaveLength(claims.length);
  const reasons = new Set(findings.map((finding) => (finding.proven ? "proven" : finding.reason)));
  expect([...reasons]).toEqual([
    expect.stringMatching(/^(it was still trying [a-z]+\.[a-z-]+.*|its first sandbox wasn't open yet)$/),
  ]);
});

describe("the fix depends on bubblewrap's message", () => {
  test.each([
    ["bubblewrap isn't installed", "apt install bubblewrap"],
    ["bwrap: No permissions to create new namespace", "seccomp=unconfined"],
    ["bwrap: No permissions to create a new namespace, likely because", "seccomp=unconfined"],
    ["bwrap: Creating new namespace failed: Operation not permitted", "seccomp=unconfined"],
    ["The jail can't be opened: unshare: unshare failed: Operation not permitted", "--cap-add SYS_ADMIN"],
    ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"],
    ["bwrap: pivot_root: Operation not permitted", "seccomp=unconfined"],
    ["bwrap: setting up uid map: Permission denied", "AppArmor"],
    ["bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"],
    ["bwrap: Unknown option --bind-fd", "lacks --bind-fd"],
    ["This host (darwin) has no namespaces: run Ambit on Linux", "Linux"],
    ["The disk limit can't be set (Operation not permitted)", "loop devices"],
    ["something new", "name another sandbox"],
  ])("%s", (reason, fix) => {
    expect(fixFor(reason)).toContain(fix);
  });
});
