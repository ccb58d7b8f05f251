// needs: jail
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { enteringSteps, stepsProgram } from "../src/enter.js";
import { inPod, noPod, unknownMachine } from "./support/user-namespace.js";

const execute = promisify(execFile);
const architecture = process.arch;
const isRoot = process.getuid?.() === 0;
const entering = {
  podShape: "user-namespace",
  isNetworkOpen: false,
  folders: ["/tmp"],
  sealed: ["/etc/hosts"],
} as const;
const steps = isSeccompArchitecture(architecture) ? enteringSteps(architecture, entering) : [];
let folder: string;

beforeAll(async () => {
  // Not below /tmp, which is covered inside.
  folder = await mkdtemp("/var/tmp/ambit-enter-");
  await chmod(folder, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The program without one of its steps; with all of them by default. */
async function programWithout(removed?: number): Promise<string> {
  if (!isSeccompArchitecture(architecture)) throw new Error("unknown machine");
  const path = join(folder, `without-${removed ?? "nothing"}`);
  await writeFile(
    path,
    stepsProgram(
      architecture,
      steps.filter((_step, index) => index !== removed),
    ),
  );
  await chmod(path, 0o755);
  return path;
}

/** What the guest daemon would find, in words that are the same each time. */
const look = `[ "$(readlink /proc/self/ns/net)" = "$1" ] && echo "the pod's network"
cat /sys/class/net/lo/operstate; ip -br link show lo 2>/dev/null | grep -o UP
grep -E "^(CapBnd|NoNewPrivs|Seccomp|Seccomp_filters):" /proc/self/status
grep -oE " (/|/tmp|/proc|/etc/hosts) r[ow],[a-z,]*|hidepid=[a-z0-9]+" /proc/self/mountinfo
python3 -c 'import socket
s = socket.socket(); s.settimeout(2)
print("loopback", s.connect_ex(("127.0.0.1", 9)))' 2>&1 | tail -1`;

async function seenWithout(removed?: number): Promise<string> {
  const argv = ["/bin/sh", "-c", 'exec "$1" /bin/sh -c "$2" sh "$(readlink /proc/self/ns/net)"'];
  const said = await inPod([...argv, "sh", await programWithout(removed), look]).catch(
    (error: unknown) => `it ends: ${String(Object(error).stdout).trim()}`,
  );
  return said.trim();
}

/** They show that the namespace is the pod's own: what is without them is seen only where it isn't. */
const aboutUserMap = steps.flatMap(({ failure }, index) =>
  /uid_map|hostUsers/.test(failure) ? [index] : [],
);

describeUnless(noPod)("the entering program without one of its steps", () => {
  it("leaves something that the guest daemon would see, or ends", async () => {
    const whole = await seenWithout();
    expect(whole).toContain("Seccomp:\t2");
    expect(whole).not.toContain("it ends");
    const unnoticed: string[] = [];
    for (const [index, { failure }] of steps.entries())
      if (!aboutUserMap.includes(index) && (await seenWithout(index)) === whole) unnoticed.push(failure);
    expect(unnoticed).toEqual([]);
    expect(steps.length - aboutUserMap.length).toBeGreaterThan(8);
  });
});

describeUnless(unknownMachine ?? (isRoot ? undefined : "only root has the mounts of a host"))(
  "the entering program without its look at the user namespace",
  () => {
    /** Root of the host, with mounts, processes and a network that may be changed. */
    const ownNamespaces = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--net"];
    const asHostsRoot = async (program: string) =>
      // Without a file to read, the program would wait for its input.
      await execute("/bin/sh", [
        "-c",
        'exec "$@" < /dev/null',
        "sh",
        ...ownNamespaces,
        program,
        "/bin/true",
      ]).then(
        () => "it goes on",
        (error: unknown) => String(Object(error).stdout).trim(),
      );

    it("goes on as the node's root, and with it refuses", async (context) => {
      const { stdout: map } = await execute("cat", ["/proc/self/uid_map"]);
      if (!/^\s*0\s+0\s/.test(map)) context.skip("host: these tests run in a user namespace of their own");
      expect(await asHostsRoot(await programWithout())).toMatch(/no user namespace of its own/);
      for (const removed of aboutUserMap)
        expect(await asHostsRoot(await programWithout(removed)), steps[removed]?.failure).not.toMatch(
          /no user namespace of its own/,
        );
    });
  },
);
