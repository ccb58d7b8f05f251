import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { allowedCalls, type SyscallName, syscallNames } from "@ambit/attacks/system-calls";

/**
 * The system calls that a container allows besides those that programs need: `mount` goes through to the kernel's own
 * check, because the engine remounts /proc at the start, and no process of a run has the capability for it. Stricter than
 * Docker's default in the families of sockets.
 */
const allowed = [...allowedCalls.map(({ name }) => name), "mount", "openat2", "ptrace"].join(" ");

/** CLONE_NEWTIME is part of the exit signal here; the others are CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. */
const namespaceFlags =
  0x0002_0000 + 0x0200_0000 + 0x0400_0000 + 0x0800_0000 + 0x1000_0000 + 0x2000_0000 + 0x4000_0000;

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: all end in the container's network. vsock doesn't. */
const socketFamilies = [1, 2, 10, 16];
/** Personalities: Linux, and those that programs need; the last one only queries. */
const personalities = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];
const [TIOCSTI, TIOCLINUX, ENOSYS] = [0x5412, 0x541c, 38];

const allow = "SCMP_ACT_ALLOW";
const equal = (index: number, value: number) => ({ index, value, op: "SCMP_CMP_EQ" });

/**
 * Every 32-bit value but these, as blocks of values that begin with the same bits. Engines allow a call if one of several tests
 * of an argument holds, so two tests for "not equal" would allow all; and the kernel ignores the upper half of this argument,
 * which other comparisons include.
 */
function allBut(excluded: readonly number[]) {
  const blocks: { readonly op: string; readonly value: number; readonly valueTwo: number }[] = [];
  const split = (value: number, bit: number, inside: readonly number[]) => {
    // In the engine's terms, `value` is the mask, and `valueTwo` what is left.
    const mask = 2 ** 32 - 2 ** bit;
    if (inside.length === 0) blocks.push({ op: "SCMP_CMP_MASKED_EQ", value: mask, valueTwo: value });
    else if (bit > 0) {
      const upper = value + 2 ** (bit - 1);
      split(
        value,
        bit - 1,
        inside.filter((excludedValue) => excludedValue < upper),
      );
      split(
        upper,
        bit - 1,
        inside.filter((excludedValue) => excludedValue >= upper),
      );
    }
  };
  split(0, 32, excluded);
  return blocks;
}

/** In the engine's format, for `--security-opt seccomp=`: calls of other architectures are refused. */
export const seccompProfile = JSON.stringify({
  defaultAction: "SCMP_ACT_ERRNO",
  syscalls: [
    { names: allowed.trim().split(/\s+/), action: allow },
    ...socketFamilies.map((family) => ({ names: ["socket"], action: allow, args: [equal(0, family)] })),
    { names: ["socketpair"], action: allow, args: [equal(0, 1)] },
    ...personalities.map((personality) => ({
      names: ["personality"],
      action: allow,
      args: [equal(0, personality)],
    })),
    {
      names: ["clone"],
      action: allow,
      args: [{ index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // The flags of clone3 are behind a pointer, which a filter can't read. Libraries do without both.
    { names: ["clone3", "io_setup"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    // A byte pushed into a terminal is a command typed by its user.
    ...allBut([TIOCSTI, TIOCLINUX]).map((block) => ({
      names: ["ioctl"],
      action: allow,
      args: [{ index: 1, ...block }],
    })),
  ],
});

/**
 * Of the calls that a probe tries, those that the profile refuses, always or with the arguments of the attempts: for
 * `StandardProbe.refusedCalls`.
 */
export const refusedByProfile: readonly SyscallName[] = syscallNames.filter(
  (name) => !allowed.trim().split(/\s+/).includes(name),
);

/**
 * The same as a file, for engines that take a path. @returns its path. @param folder that only the runner's user writes
 * to.
 */
export async function writeSeccompProfile(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, "seccomp.json");
  // Atomically: another runner's engine may read it at the same time.
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, seccompProfile, { mode: 0o644 });
  await rename(fresh, path);
  return path;
}
