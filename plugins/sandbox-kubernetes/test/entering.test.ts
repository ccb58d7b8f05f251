// needs: jail
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { isSeccompArchitecture, numberOf, seccompArchitectures } from "@ambit/attacks/system-calls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import type { PodShape } from "../src/enter.js";
import { enteringProgram, type Step, stepsProgram } from "../src/enter.js";
import { inPod, noPod, unknownMachine } from "./support/user-namespace.js";

const execute = promisify(execFile);
const architecture = process.arch;
let folder: string;

beforeAll(async () => {
  // Not below /tmp, which is covered inside.
  folder = await mkdtemp("/var/tmp/ambit-enter-");
  await chmod(folder, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function program(
  podShape: PodShape,
  { isNetworkOpen = false, folders = ["/tmp"], sealed = ["/etc/hosts"] } = {},
) {
  if (!isSeccompArchitecture(architecture)) throw new Error("unknown machine");
  const path = join(folder, `enter-${podShape}-${isNetworkOpen}-${folders.length}`);
  await writeFile(path, enteringProgram(architecture, { podShape, isNetworkOpen, folders, sealed }));
  await chmod(path, 0o755);
  return path;
}

/** What a process finds out about itself. */
const look = `id -u; readlink /proc/self/ns/net; grep -E "^(CapBnd|CapEff|NoNewPrivs|Seccomp):" /proc/self/status
grep -E " (/|/tmp|/proc|/etc/hosts) " /proc/self/mountinfo; cat /sys/class/net/lo/operstate 2>/dev/null; grep -c : /proc/net/dev
unshare -n true 2>&1; mount -t tmpfs none /mnt 2>&1; true`;
const looking = ["/bin/sh", "-c", look];

describeUnless(noPod)("the entering program in a user namespace", () => {
  it("leaves the network, hides processes, gives up its rights and loads the filter", async () => {
    const [before, after] = await Promise.all([
      inPod(looking),
      inPod([await program("user-namespace"), ...looking]),
    ]);
    // The control: without it, root of the namespace mounts and has every right of it.
    expect(before).not.toMatch(/unshare: |mount: |hidepid/);
    expect(before).toMatch(/Seccomp:\t[0-2]/);
    expect(after).toMatch(/NoNewPrivs:\t1/);
    expect(after).toMatch(/Seccomp:\t2/);
    expect(after).toMatch(/ \/proc .*hidepid=(2|invisible)/);
    expect(after).toMatch(/ \/tmp rw,nosuid,nodev/);
    expect(before).toMatch(/ \/ rw/);
    expect(after).toMatch(/ \/ \/ ro,nosuid,nodev/);
    expect(before).toMatch(/ \/etc\/hosts rw/);
    expect(after).toMatch(/ \/etc\/hosts ro,nosuid,nodev,noexec/);
    expect(after).toMatch(/unshare: .*not permitted/);
    expect(after).toMatch(/mount: .*(denied|not permitted)/);
    const bounding = (text: string) => BigInt(`0x${/CapBnd:\t(\w+)/.exec(text)?.[1] ?? "0"}`);
    for (const right of [8n, 12n, 21n]) {
      expect(bounding(before) & (1n << right)).not.toBe(0n);
      expect(bounding(after) & (1n << right)).toBe(0n);
    }
  });

  it("starts the loopback interface of a network of its own, and of no open one", async () => {
    const reach = `node -e 'const s=require("net").createServer(c=>c.end()).listen(0,"127.0.0.1",()=>require("net").connect(s.address().port,"127.0.0.1").on("connect",()=>{console.log("reached");process.exit()})).on("error",e=>{console.log(e.code);process.exit()});setTimeout(()=>{console.log("nothing");process.exit()},3000)'`;
    const argv = [
      "/bin/sh",
      "-c",
      `PATH=$1:$PATH; ${reach}; readlink /proc/self/ns/net`,
      "sh",
      join(process.execPath, ".."),
    ];
    const outside = await inPod([
      "/bin/sh",
      "-c",
      'readlink /proc/self/ns/net; exec "$@"',
      "sh",
      await program("user-namespace"),
      ...argv,
    ]);
    const [pods, reached, own] = outside.trim().split("\n");
    expect(reached).toBe("reached");
    expect(own).not.toBe(pods);
    const open = await inPod([
      "/bin/sh",
      "-c",
      'readlink /proc/self/ns/net; exec "$@"',
      "sh",
      await program("user-namespace", { isNetworkOpen: true }),
      ...argv,
    ]);
    expect(open.trim().split("\n").at(-1)).toBe(open.split("\n")[0]);
  });

  it("ends with a reason where a step fails", async () => {
    const missing = await program("user-namespace", { folders: ["/tmp", "/nowhere"] });
    await expect(inPod([missing, "/bin/true"])).rejects.toMatchObject({
      code: 125,
      stdout: "/nowhere can't be mounted with nosuid and nodev\n",
    });
    const absent = await program("user-namespace");
    await expect(inPod([absent, "/nowhere"])).rejects.toMatchObject({
      code: 125,
      stdout: "the command can't be executed\n",
    });
  });
});

describeUnless(unknownMachine)("the entering program", () => {
  it("changes nothing without a user namespace of its own", async () => {
    const { stdout: map } = await execute("cat", ["/proc/self/uid_map"]);
    // A test that runs in a user namespace has none that it could leave out.
    if (!/^\s*0\s+0\s/.test(map)) return;
    await expect(execute(await program("user-namespace"), ["/bin/true"])).rejects.toMatchObject({
      code: 125,
      stdout: "this pod has no user namespace of its own: its node ignores hostUsers\n",
    });
  });

  it("loads the filter alone in the shape baseline", async () => {
    const { stdout } = await execute(await program("baseline"), [
      "/bin/sh",
      "-c",
      `${look}; chmod 2770 "$1" && stat -c %a "$1"`,
      "sh",
      folder,
    ]);
    expect(stdout).toMatch(/NoNewPrivs:\t1/);
    expect(stdout).toMatch(/Seccomp:\t2/);
    expect(stdout).toMatch(/not permitted/);
    // The guest daemon sets the bit of its own folders.
    expect(stdout.trim().split("\n").at(-1)).toBe("2770");
  });

  it("refuses sockets other than those of TCP and UDP, unless the network is open", async () => {
    const families = "[(2, 1, 262), (2, 2, 136), (2, 1, 0), (10, 2, 17), (2, 2, 1), (2, 5, 132)]";
    const script = `import socket
for one in ${families}:
  try: socket.socket(*one).close(); print("opened")
  except OSError as error: print(error.errno)`;
    const opened = async (isNetworkOpen: boolean) => {
      const path = await program("baseline", { isNetworkOpen });
      const { stdout } = await execute(path, ["/usr/bin/env", "python3", "-c", script]);
      return stdout.trim().split("\n");
    };
    const [closed, open] = [await opened(false), await opened(true)];
    // 93 is EPROTONOSUPPORT.
    expect(closed).toEqual(["93", "93", "opened", "opened", "93", "93"]);
    // The control: UDP-Lite and MPTCP are in most kernels, SCTP is not.
    expect(open.slice(0, 4)).not.toEqual(closed.slice(0, 4));
  });

  it.for(seccompArchitectures)("is small on %s, and takes its steps there", async (machine, context) => {
    const options = { podShape: "user-namespace", isNetworkOpen: false, folders: [], sealed: [] } as const;
    expect(enteringProgram(machine, options).length).toBeLessThan(6_000);
    const bytes = Buffer.from("a step\n");
    const write = numberOf("write", machine);
    const steps: Step[] = [
      { call: write, arguments: [1, { bytes }, bytes.length], failure: "it can't write" },
      { call: numberOf("dup", machine), arguments: [1], failure: "no descriptor can be had" },
      { call: write, arguments: ["last result", { bytes }, 2], failure: "its copy can't be written" },
    ];
    const failing = { call: numberOf("close", machine), arguments: [-1], failure: "the step failed" };
    const emulator = machine === "x64" ? "qemu-x86_64" : "qemu-aarch64";
    const take = async (name: string, ...taken: Step[]) => {
      const path = join(folder, `${name}-${machine}`);
      await writeFile(path, stepsProgram(machine, taken), { mode: 0o755 });
      const [program = path, ...argv] = machine === architecture ? [path] : [emulator, path];
      return await execute(program, [...argv, "/bin/echo", "the command"]).catch((error: unknown) => {
        const { code, stdout } = Object(error);
        if (code === "ENOENT") context.skip(`host: no ${program}: apt-get install qemu-user`);
        return { code, stdout };
      });
    };
    expect(await take("steps", ...steps)).toMatchObject({ stdout: "a step\na the command\n" });
    expect(await take("failing", ...steps.slice(0, 1), failing)).toEqual({
      code: 125,
      stdout: "a step\nthe step failed\n",
    });
  });
});
