import { constants } from "node:os";
import {
  allowedCalls,
  isSeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/attacks/system-calls";
import {
  assemble,
  compileSeccompFilter,
  seccompErrno,
  seccompRules,
} from "@ambit/backend-kit/system-call-filter";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { interpret } from "./interpreter.js";

const { EPERM, EACCES, ENOSYS, EAFNOSUPPORT } = constants.errno;
const audit = { x64: 0xc000003e, arm64: 0xc00000b7 };
const allow = seccompErrno.allow;
const fail = seccompErrno.fail;
const SIGCHLD = 17;

/** [call, arguments, answer]; on a machine without the call the row is left out. */
const table: [SyscallName, (number | bigint)[], number][] = [
  ["io_uring_setup", [], fail(ENOSYS)],
  ["io_uring_enter", [], fail(ENOSYS)],
  ["io_uring_register", [], fail(ENOSYS)],
  ["clone3", [], fail(ENOSYS)],
  ["openat2", [], fail(ENOSYS)],
  ["clone", [SIGCHLD], allow],
  ["clone", [0x7f & 0xff], allow],
  ["clone", [0x3d0f00], allow], // what pthread_create asks for
  ["clone", [0x4111], allow], // vfork
  ["clone", [0x10000000 | SIGCHLD], fail(EPERM)],
  ["clone", [0x00020000], fail(EPERM)],
  ["clone", [0x02000000], fail(EPERM)],
  ["clone", [0x04000000], fail(EPERM)],
  ["clone", [0x08000000], fail(EPERM)],
  ["clone", [0x20000000], fail(EPERM)],
  ["clone", [0x40000000], fail(EPERM)],
  ["clone", [0xffff_ffff_1000_0000n], fail(EPERM)],
  ["unshare", [0x400], allow], // CLONE_FILES
  ["unshare", [0x10000000], fail(EPERM)],
  ["unshare", [0x00020000], fail(EPERM)],
  ["unshare", [0x80], fail(EPERM)],
  ["ioctl", [0, 0x5401], allow], // TCGETS
  ["ioctl", [0, 0x5412], fail(EPERM)],
  ["ioctl", [0, 0x1_0000_5412n], fail(EPERM)],
  ["ioctl", [0, 0x541c], fail(EPERM)],
  ["ioctl", [0x5412, 0x5413], allow],
  ["fcntl", [3, 3], allow], // F_GETFL
  ["fcntl", [3, 1025], allow], // F_GETLEASE
  ["fcntl", [1024, 1], allow],
  ["fcntl", [3, 1024], fail(EPERM)], // F_SETLEASE
  ["fcntl", [3, 1040], fail(EPERM)], // F_SETDELEG
  ["fcntl", [3, 0x1_0000_0400n], fail(EPERM)],
  ["socket", [1], allow],
  ["socket", [2], allow],
  ["socket", [10], allow],
  ["socket", [16], allow],
  ["socket", [0xffff_0000_0000_0002n], allow],
  ["socket", [17], fail(EAFNOSUPPORT)], // AF_PACKET
  ["socket", [38], fail(EAFNOSUPPORT)], // AF_ALG
  ["socket", [40], fail(EAFNOSUPPORT)], // AF_VSOCK
  ["socketpair", [1], allow],
  ["socketpair", [40], fail(EAFNOSUPPORT)],
  ["chmod", [0, 0o755], allow],
  ["chmod", [0, 0o4755], fail(EPERM)],
  ["chmod", [0, 0o2755], fail(EPERM)],
  ["fchmod", [3, 0o1777], allow],
  ["fchmod", [3, 101], allow], // a mode that is ptrace's number on x64: an argument is never mistaken for a call
  ["fchmod", [3, 117], allow], // and on arm64
  ["fchmod", [3, 0o6755], fail(EPERM)],
  ["fchmodat", [0, 0, 0o644], allow],
  ["fchmodat", [0, 0, 0o4755], fail(EPERM)],
  ["fchmodat2", [0, 0, 0o4755], fail(EPERM)],
  ["creat", [0, 0o644], allow],
  ["creat", [0, 0o4755], fail(EPERM)],
  ["mknod", [0, 0o100644], allow],
  ["mknod", [0, 0o104755], fail(EPERM)],
  ["mknodat", [0, 0, 0o104755], fail(EPERM)],
  ["mknodat", [0, 0, 0o010644], allow],
  ["open", [0, 0, 0o6777], allow], // no file is made: the mode is whatever the register held
  ["open", [0, 0o101, 0o644], allow],
  ["open", [0, 0o101, 0o4755], fail(EPERM)],
  ["openat", [0, 0, 0, 0o6777], allow],
  ["openat", [0, 0, 0o101, 0o644], allow],
  ["openat", [0, 0, 0o101, 0o4755], fail(EPERM)],
  ["openat", [0, 0, 0o20200002, 0o4755], fail(EPERM)], // O_TMPFILE, linked into place later
  ...always(EPERM, [
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "add_key",
    "request_key",
  ]),
  ...always(EPERM, [
    "keyctl",
    "mount",
    "umount2",
    "chroot",
    "setns",
    "open_tree",
    "fsconfig",
    "mount_setattr",
  ]),
  ...always(EPERM, ["open_tree_attr", "open_by_handle_at", "bpf", "perf_event_open", "userfaultfd"]),
  ...always(EPERM, ["create_module", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex"]),
  ...always(EPERM, ["iopl", "ioperm", "quotactl", "quotactl_fd", "uselib"]),
  ...always(ENOSYS, ["pivot_root", "move_mount", "fsopen", "fsmount", "fspick"]),
  ...always(EACCES, [
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
  ]),
  ["personality", [0], allow],
  ["personality", [0xffffffff], allow],
  ["personality", [0x40000], fail(EPERM)], // ADDR_NO_RANDOMIZE
  ["futex", [0, 0x80], allow],
  ["futex", [0, 0x189], allow], // FUTEX_WAIT_BITSET with the real-time clock
  ["futex", [0, 11], fail(ENOSYS)],
  ["futex", [0, 0x18b], fail(ENOSYS)],
  ["futex", [11, 1], allow],
  // In no list.
  ...always(ENOSYS, ["kcmp", "listmount", "mbind", "modify_ldt", "move_pages", "name_to_handle_at"]),
  ...always(ENOSYS, ["io_setup"]),
  ...always(ENOSYS, ["get_mempolicy", "process_madvise", "statmount", "sysfs", "ustat"]),
  ...always(EACCES, ["sethostname", "setdomainname", "syslog", "vhangup", "swapon", "swapoff", "acct"]),
];

function always(errno: number, calls: readonly SyscallName[]): [SyscallName, number[], number][] {
  return calls.map((call) => [call, [], fail(errno)]);
}

describe.each(["x64", "arm64"] as const)("the filter for %s", (architecture) => {
  const filter = compileSeccompFilter(architecture);
  const rows = table.flatMap(([call, args, answer]) => {
    const number = syscallNumber(call, architecture);
    return number === undefined ? [] : [{ call, number, args, answer }];
  });

  it.each(rows)("$call($args)", ({ number, args, answer }) => {
    expect(interpret(filter, { architecture: audit[architecture], number, arguments: args })).toBe(answer);
  });

  it("has a row for every call that a rule names", () => {
    const covered = new Set(table.map(([call]) => call));
    expect(Object.keys(syscallNumbers).filter((call) => !covered.has(call as SyscallName))).toEqual([]);
    expect(seccompRules.flatMap((rule) => rule.calls).filter((call) => !covered.has(call))).toEqual([]);
  });

  const listed = new Set(allowedCalls.flatMap(({ numbers }) => numbers[architecture] ?? []));
  const tested = new Set(rows.map((row) => row.number));
  const anyArguments = fc.array(fc.bigInt(0n, 2n ** 64n - 1n), { maxLength: 6 });

  it("allows every listed call without a rule, whatever the arguments", () => {
    const free = [...listed].filter((number) => !tested.has(number));
    expect(free.length).toBeGreaterThan(200);
    fc.assert(
      fc.property(fc.constantFrom(...free), anyArguments, (number, args) => {
        expect(interpret(filter, { architecture: audit[architecture], number, arguments: args })).toBe(allow);
      }),
      { numRuns: 2000 },
    );
  });

  it("refuses every other number, as a kernel without the call, whatever the arguments", () => {
    const isOther = (number: number) => !listed.has(number) && !tested.has(number);
    const others = fc.oneof(
      fc.integer({ min: 0, max: 600 }).filter(isOther),
      fc.integer({ min: 470, max: 0x3fffffff }),
    );
    fc.assert(
      fc.property(others, anyArguments, (number, args) => {
        expect(interpret(filter, { architecture: audit[architecture], number, arguments: args })).toBe(
          fail(ENOSYS),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("lists no call that a rule refuses in any case, and none twice", () => {
    const refused = seccompRules.filter(({ when }) => when === undefined).flatMap(({ calls }) => calls);
    const numbers = refused.map((call) => syscallNumber(call, architecture));
    expect(numbers.filter((number) => number !== undefined && listed.has(number))).toEqual([]);
    expect(listed.size).toBe(allowedCalls.filter(({ numbers: on }) => on[architecture] !== undefined).length);
  });

  it("kills calls of every other architecture, including named ones", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 0xffffffff }).filter((other) => other !== audit[architecture]),
        fc.integer({ min: 0, max: 600 }),
        (other, number) => {
          expect(interpret(filter, { architecture: other, number })).toBe(seccompErrno.killProcess);
        },
      ),
    );
    expect(interpret(filter, { architecture: 0x40000003, number: 1 })).toBe(seccompErrno.killProcess);
  });
});

it("refuses x32 calls, named or not, with another error than a kernel without them", () => {
  const filter = compileSeccompFilter("x64");
  for (const number of [0, 39, 101, 520, 547]) {
    expect(interpret(filter, { architecture: audit.x64, number: number | 0x40000000 })).toBe(fail(EPERM));
  }
});

it("supports the machines it has tables for", () => {
  expect(["x64", "arm64", "ia32", "riscv64", "toString"].map(isSeccompArchitecture)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

describe("the assembler", () => {
  const answer = { do: "answer", value: 1 } as const;
  it.each([
    ["a missing label", [{ do: "jump", to: "nowhere" } as const, answer], /no label nowhere/],
    [
      "a jump backwards",
      [{ do: "label", name: "a" } as const, answer, { do: "jump", to: "a" } as const],
      /away/,
    ],
    [
      "a conditional jump over 256 instructions",
      [
        { do: "if-equal", value: 1, to: "end" } as const,
        ...Array.from({ length: 256 }, () => answer),
        { do: "label", name: "end" } as const,
        answer,
      ],
      /256 instructions away/,
    ],
    [
      "a duplicate label",
      [{ do: "label", name: "a" } as const, { do: "label", name: "a" } as const],
      /twice/,
    ],
    ["a program too long for the kernel", Array.from({ length: 4097 }, () => answer), /4096/],
  ])("refuses %s", (_name, statements, message) => {
    expect(() => assemble(statements)).toThrow(message);
  });
});
