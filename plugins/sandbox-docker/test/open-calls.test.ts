// needs: jail
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";
import { compileSeccompFilter } from "@ambit/backend-kit/system-call-filter";
import { bridgeSchema, type DirectPlatform, openRemoteSandbox } from "@ambit/bridge";
import type { SandboxSpec, Scope } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";

const { arch } = process;
const rightFilter = () => {
  if (!isSeccompArchitecture(arch)) throw new Error(`no filter is known for ${arch}`);
  return compileSeccompFilter(arch);
};
/** One instruction of a filter: SECCOMP_RET_ALLOW. */
const allowEverything = () => Buffer.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]);
const claims = ["network.deny", "process.contained"] as const;
const bridge = bridgeSchema.parse({ folder: "/ambit", node: "/opt/node" });
const view = [
  ...["--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"],
  ...["--perms", "755", "--dir", "/opt", "--ro-bind", process.execPath, "/opt/node"],
  ...["/bin", "/lib", "/lib64", "/usr"].flatMap((path) => ["--ro-bind-try", path, path]),
  ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/ambit", "--remount-ro", "/"],
];

/** A sandbox of bubblewrap with a filter, over the bridge. */
function jailed(filter: string): DirectPlatform {
  const stop = new AbortController();
  return {
    async openDirectPipe(argv) {
      const descriptor = openSync(filter, "r");
      const stdio: ["pipe", "pipe", "ignore", number] = ["pipe", "pipe", "ignore", descriptor];
      const child = spawn("bwrap", [...view, "--seccomp", "3", "--", ...argv], {
        stdio,
        signal: stop.signal,
      });
      child.on("error", () => undefined);
      closeSync(descriptor);
      await once(child, "spawn");
      const [input, output]: [Writable | null, Readable | null, ...unknown[]] = child.stdio;
      if (input === null || output === null) throw new Error("the jail has no pipes");
      return { input, output, close: async () => stop.abort() };
    },
    upload: () => Promise.reject(new Error("a direct pipe carries what is copied")),
    destroy: async () => stop.abort(),
  };
}

/** @param node that the run's processes find. */
async function probe(filter: Buffer, node: string) {
  const folder = await mkdtemp(join(tmpdir(), "ambit-open-calls-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "filter");
  await writeFile(file, filter);
  const open = (spec: SandboxSpec, scope: Scope) =>
    openRemoteSandbox({ platform: jailed(file), spec, bridge, evidence: {}, ownSystem: true }, scope);
  const fixFor = () => "filter system calls";
  return await probeSandboxes({ claims, open, node, fixFor }, AbortSignal.timeout(60_000));
}

describe("sandboxes of bubblewrap under the standard probe", { timeout: 90_000 }, () => {
  it("are proven with a filter of system calls", async () => {
    const findings = await probe(rightFilter(), bridge.node);
    expect(findings).toMatchObject(claims.map((capability) => ({ capability, proven: true })));
  });

  it.each([
    ["where everything of the probe runs", bridge.node],
    ["where the run's processes can't start Node.js", "/opt/absent"],
  ])(
    "aren't with one that allows everything: each call that the kernel took is named, %s",
    async (_, node) => {
      expect(await probe(allowEverything(), node)).toMatchObject([
        { proven: false, reason: expect.stringMatching(/^system calls reach the kernel: .*socket 0x28 /) },
        {
          proven: false,
          reason: expect.stringMatching(/^system calls reach the kernel: .*add_key 0x1 0x1 /),
        },
      ]);
    },
  );

  it("aren't where Node.js doesn't start, whatever the filter is: nothing else was seen", async () => {
    const [network] = await probe(rightFilter(), "/opt/absent");
    expect(network).toMatchObject({ proven: false, reason: expect.stringContaining("/opt/absent") });
  });
});
