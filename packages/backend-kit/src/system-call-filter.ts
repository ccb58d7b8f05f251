/** A filter of system calls as the kernel loads it, for sandboxes that no container engine filters. */

import { constants } from "node:os";
import {
  allowedCalls,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
} from "@ambit/attacks/system-calls";

/** AUDIT_ARCH_* of linux/audit.h: what the kernel writes into `seccomp_data.arch`. */
const auditArchitecture: Readonly<Record<SeccompArchitecture, number>> = {
  x64: 0xc000003e,
  arm64: 0xc00000b7,
};

/** A test of the low 32 bits of one argument. The kernel reads no more of the tested arguments. */
export type ArgumentTest =
  | { readonly argument: number; readonly anyBitOf: number }
  | { readonly argument: number; readonly isOneOf: readonly number[] }
  | { readonly argument: number; readonly isNoneOf: readonly number[] };

/** The calls fail with `errno`: always, or when every test of `when` holds. The first rule that applies decides. */
export interface SeccompRule {
  readonly calls: readonly SyscallName[];
  readonly errno: number;
  readonly when?: readonly ArgumentTest[];
}

const { EPERM, EACCES, ENOSYS, EAFNOSUPPORT } = constants.errno;

/** S_ISUID | S_ISGID (linux/stat.h). */
const SET_ID_BITS = 0o6000;
/**
 * O_CREAT | __O_TMPFILE: open() reads its mode only with one of them; otherwise the register has an arbitrary value.
 */
const CREATES_A_FILE = 0o100 | 0o20000000;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h). */
const NAMESPACE_FLAGS =
  0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000;
/** CLONE_NEWTIME. In clone() these bits are part of the exit signal, and the flag doesn't exist. */
const NEW_TIME_NAMESPACE = 0x80;

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

/**
 * AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the first three end in the jail's network namespace, the last is read-only.
 */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** PER_LINUX, PER_LINUX32, the same with UNAME26, and the query. */
const PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];
/**
 * FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI, with FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME: their code in the
 * kernel had several holes that any process could use, and no C library uses them any more.
 */
const PI_REQUEUE = [11, 12, 139, 140, 267, 395];

/**
 * F_SETLEASE and F_SETDELEG: on a file that it can only read, but whose owner it is, a process holds up the host's next programs that
 * open it.
 */
const LEASES = [1024, 1040];

/**
 * no_new_privs doesn't stop the sandbox from leaving a set-id file in the workspace for the host to run. A guest daemon
 * that sets a folder's set-group-ID bit needs a filter without these rules.
 */
export const setIdRules: readonly SeccompRule[] = [
  {
    calls: ["chmod", "fchmod", "creat", "mknod"],
    errno: EPERM,
    when: [{ argument: 1, anyBitOf: SET_ID_BITS }],
  },
  {
    calls: ["fchmodat", "fchmodat2", "mknodat"],
    errno: EPERM,
    when: [{ argument: 2, anyBitOf: SET_ID_BITS }],
  },
  {
    calls: ["open"],
    errno: EPERM,
    when: [
      { argument: 1, anyBitOf: CREATES_A_FILE },
      { argument: 2, anyBitOf: SET_ID_BITS },
    ],
  },
  {
    calls: ["openat"],
    errno: EPERM,
    when: [
      { argument: 2, anyBitOf: CREATES_A_FILE },
      { argument: 3, anyBitOf: SET_ID_BITS },
    ],
  },
];

/**
 * What a sandboxed process may not ask of the kernel, and the error it gets. Other calls that aren't in the list of
 * allowed ones don't exist for it (ENOSYS), so that programs do without them as on an older kernel.
 */
export const seccompRules: readonly SeccompRule[] = [
  {
    // ENOSYS lets libraries fall back: clone3 and openat2 hide their flags behind a pointer that a filter can't read.
    calls: ["io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"],
    errno: ENOSYS,
  },
  { calls: ["clone"], errno: EPERM, when: [{ argument: 0, anyBitOf: NAMESPACE_FLAGS }] },
  {
    calls: ["unshare"],
    errno: EPERM,
    when: [{ argument: 0, anyBitOf: NAMESPACE_FLAGS | NEW_TIME_NAMESPACE }],
  },
  { calls: ["personality"], errno: EPERM, when: [{ argument: 0, isNoneOf: PERSONALITIES }] },
  { calls: ["futex"], errno: ENOSYS, when: [{ argument: 1, isOneOf: PI_REQUEUE }] },
  { calls: ["fcntl"], errno: EPERM, when: [{ argument: 1, isOneOf: LEASES }] },
  {
    // A byte pushed into the terminal that the runner shares is a command typed by its operator.
    calls: ["ioctl"],
    errno: EPERM,
    when: [{ argument: 1, isOneOf: [TIOCSTI, TIOCLINUX] }],
  },
  {
    // vsock reaches the hypervisor from inside any network namespace.
    calls: ["socket", "socketpair"],
    errno: EAFNOSUPPORT,
    when: [{ argument: 0, isNoneOf: SOCKET_FAMILIES }],
  },
  ...setIdRules,
  {
    // Without this a payload attaches to the sandbox's own init and stops it.
    calls: ["ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"],
    errno: EPERM,
  },
  { calls: ["add_key", "request_key", "keyctl"], errno: EPERM },
  {
    calls: ["mount", "umount2", "chroot", "setns", "open_tree", "fsconfig", "mount_setattr"],
    errno: EPERM,
  },
  { calls: ["open_tree_attr", "open_by_handle_at"], errno: EPERM },
  { calls: ["bpf", "perf_event_open", "userfaultfd", "iopl", "ioperm"], errno: EPERM },
  {
    calls: ["settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "quotactl", "quotactl_fd"],
    errno: EPERM,
  },
  { calls: ["create_module", "uselib"], errno: EPERM },
  // Nothing without capabilities may make the calls below, and the kernel answers EPERM before it checks an argument,
  // or ENOSYS if it was built without them. Another error means the same to a program, and shows a probe that the
  // filter refused.
  { calls: ["pivot_root", "move_mount", "fsopen", "fsmount", "fspick"], errno: ENOSYS },
  {
    calls: [
      ...(["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"] as const),
      ...([
        "reboot",
        "sethostname",
        "setdomainname",
        "swapon",
        "swapoff",
        "acct",
        "syslog",
        "vhangup",
      ] as const),
    ],
    errno: EACCES,
  },
];

/**
 * A small assembler for classic BPF as seccomp reads it (linux/filter.h, linux/seccomp.h): statements with named
 * labels in, `struct sock_filter[]` out.
 */

/** Offsets into `struct seccomp_data`. An argument is 64 bits wide, low half first on both machines. */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const argumentOffset = (index: number): number => 16 + 8 * index;

const opcode = {
  loadWord: 0x20, // BPF_LD | BPF_W | BPF_ABS
  jump: 0x05, // BPF_JMP | BPF_JA
  jumpIfEqual: 0x15, // BPF_JMP | BPF_JEQ | BPF_K
  jumpIfAtLeast: 0x35, // BPF_JMP | BPF_JGE | BPF_K
  jumpIfAnyBit: 0x45, // BPF_JMP | BPF_JSET | BPF_K
  answer: 0x06, // BPF_RET | BPF_K
} as const;

const conditionalJumps = {
  "if-equal": opcode.jumpIfEqual,
  "if-at-least": opcode.jumpIfAtLeast,
  "if-any-bit": opcode.jumpIfAnyBit,
} as const;

export type BpfStatement =
  | { readonly do: "label"; readonly name: string }
  | { readonly do: "load"; readonly offset: number }
  | { readonly do: "jump"; readonly to: string }
  | { readonly do: keyof typeof conditionalJumps; readonly value: number; readonly to: string }
  | { readonly do: "answer"; readonly value: number };

type BpfInstruction = Exclude<BpfStatement, { do: "label" }>;

/** A conditional jump skips at most 255 instructions: 8 bits in the kernel's format. */
const maxConditionalJump = 255;
/** BPF_MAXINSNS: the kernel refuses a longer program. */
const maxProgramLength = 4096;

/**
 * Encodes statements as little-endian `struct sock_filter { u16 code; u8 jt, jf; u32 k }`, 8 bytes each.
 * Throws when a label is missing, lies behind the jump, or is out of reach: a mistake in the rules, never in input.
 */
export function assemble(statements: readonly BpfStatement[]): Buffer {
  const labels = new Map<string, number>();
  const instructions: BpfInstruction[] = [];
  for (const statement of statements) {
    if (statement.do !== "label") instructions.push(statement);
    else if (labels.has(statement.name))
      throw new Error(`seccomp program: label ${statement.name} occurs twice`);
    else labels.set(statement.name, instructions.length);
  }
  if (instructions.length > maxProgramLength) {
    throw new Error(
      `seccomp program: ${instructions.length} instructions, the kernel accepts ${maxProgramLength}`,
    );
  }
  const distance = (from: number, to: string, max: number): number => {
    const target = labels.get(to);
    if (target === undefined) throw new Error(`seccomp program: no label ${to}`);
    const skipped = target - from - 1;
    if (skipped < 0 || skipped > max) {
      throw new Error(`seccomp program: ${to} is ${skipped} instructions away from instruction ${from}`);
    }
    return skipped;
  };
  const encode = (
    instruction: BpfInstruction,
    index: number,
  ): [code: number, jumpTrue: number, value: number] => {
    switch (instruction.do) {
      case "load":
        return [opcode.loadWord, 0, instruction.offset];
      case "jump":
        return [opcode.jump, 0, distance(index, instruction.to, maxProgramLength)];
      case "if-equal":
      case "if-at-least":
      case "if-any-bit": {
        const skipped = distance(index, instruction.to, maxConditionalJump);
        return [conditionalJumps[instruction.do], skipped, instruction.value];
      }
      case "answer":
        return [opcode.answer, 0, instruction.value];
    }
  };
  const program = Buffer.alloc(instructions.length * 8);
  instructions.forEach((instruction, index) => {
    const [code, jumpTrue, value] = encode(instruction, index);
    program.writeUInt16LE(code, index * 8);
    program.writeUInt8(jumpTrue, index * 8 + 2);
    program.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return program;
}

/** SECCOMP_RET_* of linux/seccomp.h. */
export const seccompErrno = {
  killProcess: 0x80000000,
  fail: (errno: number): number => 0x00050000 | errno,
  allow: 0x7fff0000,
} as const;

/**
 * __X32_SYSCALL_BIT: the 32-bit pointer ABI of x86-64 has separate numbers, which no rule would match. Refused with
 * another error than that of a kernel without it (ENOSYS), so that a probe can tell them apart.
 */
export const x32Bit = { number: 0x40000000, errno: constants.errno.EPERM } as const;

/** For a call that isn't in the list of allowed ones. */
const unlistedErrno = constants.errno.ENOSYS;

/**
 * Compiles the sandbox's filter for `bwrap --seccomp FD`, which reads a raw `struct sock_filter[]`.
 *
 * A call of another architecture (`int 0x80` on x86-64, 32-bit ARM on arm64) kills the process with SIGSYS: its
 * numbers mean other calls.
 */
export function compileSeccompFilter(architecture: SeccompArchitecture): Buffer {
  return assemble(filterStatements(architecture, seccompRules, allowedNumbers(architecture)));
}

/** Numbers of the calls that are allowed unless a rule tests them. */
export function allowedNumbers(architecture: SeccompArchitecture): readonly number[] {
  return allowedCalls.flatMap(({ numbers }) => numbers[architecture] ?? []);
}

/** The filter of these rules: what they don't refuse is allowed if they test it, or if it is listed. */
export function filterStatements(
  architecture: SeccompArchitecture,
  rules: readonly SeccompRule[],
  listed: readonly number[],
): readonly BpfStatement[] {
  const tested = rules.filter(({ when }) => when !== undefined).flatMap(({ calls }) => calls);
  const numbersOf = (calls: readonly SyscallName[]) =>
    calls.flatMap((call) => syscallNumber(call, architecture) ?? []);
  const numbersTested = numbersOf(tested);
  const allowed = listed.filter((number) => !numbersTested.includes(number));
  return [
    { do: "load", offset: ARCHITECTURE_OFFSET },
    { do: "if-equal", value: auditArchitecture[architecture], to: "native" },
    { do: "answer", value: seccompErrno.killProcess },
    { do: "label", name: "native" },
    { do: "load", offset: NUMBER_OFFSET },
    ...(architecture === "x64" ? refuseX32() : []),
    // First: almost every call is one of these.
    ...allowStatements(allowed),
    { do: "label", name: "not allowed in any case" },
    ...rules.flatMap((rule, index) => ruleStatements(rule, architecture, `rule ${index}`)),
    ...numbersTested.map((value): BpfStatement => ({ do: "if-equal", value, to: "spared" })),
    { do: "answer", value: seccompErrno.fail(unlistedErrno) },
    { do: "label", name: "spared" },
    { do: "answer", value: seccompErrno.allow },
  ];
}

/** Allows the numbers, as ranges in ascending order. */
function allowStatements(numbers: readonly number[]): BpfStatement[] {
  return rangesOf(numbers).flatMap(({ first, last }): BpfStatement[] => [
    { do: "if-at-least", value: last + 1, to: `above ${last}` },
    { do: "if-at-least", value: first, to: `from ${first}` },
    { do: "jump", to: "not allowed in any case" },
    { do: "label", name: `from ${first}` },
    { do: "answer", value: seccompErrno.allow },
    { do: "label", name: `above ${last}` },
  ]);
}

interface Range {
  readonly first: number;
  readonly last: number;
}

function rangesOf(numbers: readonly number[]): readonly Range[] {
  const ranges: Range[] = [];
  for (const number of [...new Set(numbers)].sort((one, other) => one - other)) {
    const open = ranges.at(-1);
    if (open?.last === number - 1) ranges.splice(-1, 1, { first: open.first, last: number });
    else ranges.push({ first: number, last: number });
  }
  return ranges;
}

function refuseX32(): BpfStatement[] {
  return [
    { do: "if-any-bit", value: x32Bit.number, to: "x32" },
    { do: "jump", to: "rules" },
    { do: "label", name: "x32" },
    { do: "answer", value: seccompErrno.fail(x32Bit.errno) },
    { do: "label", name: "rules" },
  ];
}

/** One rule as a block that is entered and left with the call's number loaded. */
function ruleStatements(rule: SeccompRule, architecture: SeccompArchitecture, name: string): BpfStatement[] {
  const numbers = rule.calls.flatMap((call) => syscallNumber(call, architecture) ?? []);
  if (numbers.length === 0) return [];
  const tests = rule.when ?? [];
  return [
    ...numbers.map((value): BpfStatement => ({ do: "if-equal", value, to: `${name}: matched` })),
    { do: "jump", to: `${name}: done` },
    { do: "label", name: `${name}: matched` },
    ...tests.flatMap((test, index) => testStatements(test, `${name}, test ${index}`, `${name}: spared`)),
    { do: "answer", value: seccompErrno.fail(rule.errno) },
    { do: "label", name: `${name}: spared` },
    ...(tests.length > 0 ? [{ do: "load", offset: NUMBER_OFFSET } as const] : []),
    { do: "label", name: `${name}: done` },
  ];
}

/** Continues if the test holds, jumps to `otherwise` if it doesn't. */
function testStatements(test: ArgumentTest, name: string, otherwise: string): BpfStatement[] {
  const load: BpfStatement = { do: "load", offset: argumentOffset(test.argument) };
  const holds = `${name}: holds`;
  if ("isNoneOf" in test) {
    return [load, ...test.isNoneOf.map((value): BpfStatement => ({ do: "if-equal", value, to: otherwise }))];
  }
  const checks: BpfStatement[] =
    "anyBitOf" in test
      ? [{ do: "if-any-bit", value: test.anyBitOf, to: holds }]
      : test.isOneOf.map((value): BpfStatement => ({ do: "if-equal", value, to: holds }));
  return [load, ...checks, { do: "jump", to: otherwise }, { do: "label", name: holds }];
}

/** The `errno` that the compiled filter gives a call; undefined if it allows the call. */
export function errnoOf(call: SyscallName, given: readonly bigint[]): number | undefined {
  const holds = (test: ArgumentTest) => {
    const value = Number(BigInt.asUintN(32, given[test.argument] ?? 0n));
    if ("anyBitOf" in test) return (BigInt(value) & BigInt(test.anyBitOf)) !== 0n;
    return "isOneOf" in test ? test.isOneOf.includes(value) : !test.isNoneOf.includes(value);
  };
  const naming = seccompRules.filter(({ calls }) => calls.includes(call));
  const applying = naming.find(({ when = [] }) => when.every(holds));
  if (applying !== undefined) return applying.errno;
  const isKnown = naming.length > 0 || allowedCalls.some(({ name }) => name === call);
  return isKnown ? undefined : unlistedErrno;
}
