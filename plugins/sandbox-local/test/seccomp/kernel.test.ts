// needs: jail
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import {
  isSeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/attacks/system-calls";
import { compileSeccompFilter } from "@ambit/backend-kit/system-call-filter";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeUnless } from "../../../../scripts/vitest/skip-without.ts";

const { EPERM, ENOSYS, EAFNOSUPPORT } = constants.errno;
const UNPRIVILEGED = 12345;
const KILLED_BY_SIGSYS = -1000 - constants.signals.SIGSYS;

/** Every attack of kernel-attacks.py, with the result that the filter must give it. */
const guarded: Record<string, number> = {
  unshare: -EPERM,
  clone: -EPERM,
  clone3: -ENOSYS,
  io_uring_setup: -ENOSYS,
  openat2: -ENOSYS,
  add_key: -EPERM,
  keyctl: -EPERM,
  ptrace: -EPERM,
  process_vm_readv: -EPERM,
  pidfd_getfd: -EPERM,
  "socket-vsock": -EAFNOSUPPORT,
  chmod: -EPERM,
  fchmod: -EPERM,
  fchmodat2: -EPERM,
  openat: -EPERM,
  "openat-tmpfile": -EPERM,
  mknodat: -EPERM,
  "ioctl-tiocsti": -EPERM,
  "ioctl-tiocsti-high-bits": -EPERM,
  "fcntl-lease": -EPERM,
  io_setup: -ENOSYS,
  userfaultfd: -EPERM,
  perf_event_open: -EPERM,
  open_tree: -EPERM,
  adjtimex: -EPERM,
  "foreign-architecture": KILLED_BY_SIGSYS,
};

/** These need nothing of the host: a control that fails here is a broken test, not a restrictive host. */
const worksEverywhere = ["clone3", "openat2", "ptrace", "process_vm_readv", "pidfd_getfd", "chmod", "fchmod"];
worksEverywhere.push(
  "openat",
  "openat-tmpfile",
  "mknodat",
  "keyctl",
  "open_tree",
  "adjtimex",
  "fcntl-lease",
  "io_setup",
);

const missing =
  process.platform !== "linux"
    ? "seccomp is Linux's"
    : !isSeccompArchitecture(process.arch)
      ? `no table for ${process.arch}`
      : ["/usr/bin/bwrap", "/usr/bin/python3"]
          .filter((path) => !existsSync(path))
          .map((path) => `${path} is missing`)[0];

describeUnless(missing === undefined ? undefined : `the filter isn't tried here: ${missing}`)(
  "the filter in the kernel, in a jail",
  () => {
    let folder: string;
    let control: Map<string, number>;
    let filtered: Map<string, number>;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "ambit-seccomp-"));
      const script = await readFile(new URL("./kernel-attacks.py", import.meta.url), "utf8");
      control = await run(script);
      if (!isSeccompArchitecture(process.arch)) throw new Error(`no table for ${process.arch}`);
      const file = join(folder, "filter");
      writeFileSync(file, compileSeccompFilter(process.arch));
      const descriptor = openSync(file, "r");
      try {
        filtered = await run(script, descriptor);
      } finally {
        closeSync(descriptor);
      }
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    it("runs both times as an unprivileged user", () => {
      expect(control.get("RAN")).toBeGreaterThan(0);
      expect(filtered.get("RAN")).toBe(control.get("RAN"));
    });

    it.for(Object.entries(guarded))("%s works unguarded, fails guarded", ([attack, answer], context) => {
      const unguarded = control.get(attack);
      if (attack === "foreign-architecture" && process.arch !== "x64")
        return context.skip("host: int 0x80 is x86's");
      expect(filtered.get(attack)).toBe(answer);
      if (worksEverywhere.includes(attack)) expect(unguarded).toBeGreaterThanOrEqual(0);
      if (unguarded === undefined || unguarded < 0) {
        context.skip(
          `host: ${attack} has no control here: without the filter this host answers ${unguarded}`,
        );
      }
    });

    it("doesn't affect ordinary programs", () => {
      const ordinary = [...filtered].filter(([name]) => name.startsWith("allowed-"));
      expect(ordinary).toHaveLength(8);
      expect(ordinary.filter(([, result]) => result < 0)).toEqual([]);
    });
  },
);

/** The attacks' results by name, from a jail with the host's own programs and nothing else. */
async function run(script: string, filter?: number): Promise<Map<string, number>> {
  if (!isSeccompArchitecture(process.arch)) throw new Error(`no table for ${process.arch}`);
  const architecture = process.arch;
  const numbers = (Object.keys(syscallNumbers) as SyscallName[])
    .map((name) => `${name}=${syscallNumber(name, architecture) ?? -1}`)
    .join(",");
  const jail = ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"];
  jail.push("--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64");
  jail.push("--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/scratch");
  if (filter !== undefined) jail.push("--seccomp", "3");
  const child = spawn("/usr/bin/bwrap", [...jail, "--", "/usr/bin/python3", "-I", "-c", script, numbers], {
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "pipe", "pipe", ...(filter === undefined ? [] : [filter])],
    ...(process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
  });
  let output = "";
  let complaints = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`the jail exited with ${code}: ${complaints}`);
  return new Map(
    output
      .trim()
      .split("\n")
      .map((line): [string, number] => {
        const [name, result] = line.split(" ");
        return [name ?? "", Number(result)];
      }),
  );
}
