import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { numberOf, type SeccompArchitecture, tableAddress, withTable } from "@ambit/attacks/system-calls";
import {
  allowedNumbers,
  assemble,
  filterStatements,
  type SeccompRule,
  seccompRules,
  setIdRules,
} from "@ambit/backend-kit/system-call-filter";

/**
 * - `user-namespace`: root inside has no rights on the node, so the pod may have the rights with which the guest daemon leaves
 *   the pod's network, and processes are hidden from each other.
 * - `baseline`: a container without such rights. Its network is closed by the cluster's policies alone.
 */
export type PodShape = "user-namespace" | "baseline";

/** MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND of linux/mount.h. */
const [readOnly, noSuid, noDevices, noPrograms, remount, bind] = [1, 2, 4, 8, 32, 4096] as const;

/** Capabilities that only this program uses: what it starts can never have them again. */
const ownRights = { SYS_ADMIN: 21, NET_ADMIN: 12, SETPCAP: 8 } as const;
export const enteringCapabilities = Object.keys(ownRights);

/** CLONE_NEWNET; AF_INET, SOCK_DGRAM | SOCK_CLOEXEC; SIOCSIFFLAGS; IFF_UP | IFF_RUNNING. */
const [newNetwork, internet, datagram, setFlags, isUp] = [0x4000_0000, 2, 0x8_0002, 0x8914, 0x41];
/** PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS; SECCOMP_SET_MODE_FILTER. */
const [dropRight, noNewPrivileges, setFilter] = [24, 38, 1];
/** AF_INET, AF_INET6; SOCK_STREAM and SOCK_DGRAM, each with SOCK_NONBLOCK, SOCK_CLOEXEC or both; IPPROTO_TCP, _UDP. */
const internetFamilies = [2, 10];
const plainTypes = [1, 2].flatMap((type) => [0, 0x800, 0x8_0000, 0x8_0800].map((flags) => type | flags));
const plainProtocols = [0, 6, 17];
/**
 * A policy of the cluster speaks of TCP, UDP and SCTP only, and what it means for the rest, such as an echo of ICMP, is up to
 * the network. So a limited pod has sockets of TCP and UDP, which are tried from inside.
 */
const plainSocketsOnly: readonly SeccompRule[] = [
  { argument: 1, isNoneOf: plainTypes },
  { argument: 2, isNoneOf: plainProtocols },
].map((test) => ({
  calls: ["socket"],
  errno: constants.errno.EPROTONOSUPPORT,
  when: [{ argument: 0, isOneOf: internetFamilies }, test],
}));
const interfaceNameBytes = 16;
const interfaceRequestBytes = 40;

export interface Entering {
  readonly podShape: PodShape;
  /** Whether the run's processes have the pod's own network. */
  readonly isNetworkOpen: boolean;
  /** With files of the run: they get `nosuid` and `nodev`. Each is a mount. */
  readonly folders: readonly string[];
  /** Files of the runtime over the image's, which are made read-only like the image itself. Each is a mount. */
  readonly sealed: readonly string[];
}

/**
 * The program that every command of the plugin in a pod starts with, before the guest daemon: it leaves the pod's network
 * for an empty one, hides processes from each other, gives up the rights for that, and loads the filter of system calls.
 * Any step that fails ends it. Pure.
 */
export function enteringProgram(architecture: SeccompArchitecture, entering: Entering): Buffer {
  return stepsProgram(architecture, enteringSteps(architecture, entering));
}

/** What the program does, in order. Pure. */
export function enteringSteps(
  architecture: SeccompArchitecture,
  { podShape, isNetworkOpen, folders, sealed }: Entering,
): readonly Step[] {
  const call = (name: string) => numberOf(name, architecture);
  const ownNetwork: readonly Step[] = [
    { call: call("unshare"), arguments: [newNetwork], failure: "no network namespace can be made" },
    {
      call: call("socket"),
      arguments: [internet, datagram, 0],
      failure: "no socket can be made in the new network namespace",
    },
    {
      call: call("ioctl"),
      arguments: ["last result", setFlags, { bytes: interfaceRequest("lo", isUp) }],
      failure: "the loopback interface can't be started",
    },
  ];
  const apart: readonly Step[] = [
    ...userNamespaceTest(architecture),
    ...(isNetworkOpen ? [] : ownNetwork),
    {
      call: call("mount"),
      arguments: [
        ...[text("proc"), text("/proc"), 0, remount | noSuid | noDevices | noPrograms],
        text("hidepid=2,gid=0"),
      ],
      failure: "/proc can't be mounted with hidepid=2",
    },
    ...folders.map((folder) => ({
      call: call("mount"),
      arguments: [0, text(folder), 0, remount | bind | noSuid | noDevices],
      failure: `${folder} can't be mounted with nosuid and nodev`,
    })),
    // More flags than the image or the runtime gave them can always be set, fewer cannot.
    ...["/", ...sealed].map((path) => ({
      call: call("mount"),
      arguments: [
        ...[0, text(path), 0],
        remount | bind | readOnly | noSuid | noDevices | (path === "/" ? 0 : noPrograms),
      ],
      failure: `${path} can't be mounted with no right to write`,
    })),
    ...Object.entries(ownRights).map(([name, bit]) => ({
      call: call("prctl"),
      arguments: [dropRight, bit],
      failure: `${name} can't be given up`,
    })),
  ];
  // The guest daemon sets the set-group-ID bit of folders; what runs inside gains nothing by such a file.
  const rules = [
    ...seccompRules.filter((rule) => !setIdRules.includes(rule)),
    ...(isNetworkOpen ? [] : plainSocketsOnly),
  ];
  const filter = assemble(filterStatements(architecture, rules, allowedNumbers(architecture)));
  const always: readonly Step[] = [
    { call: call("prctl"), arguments: [noNewPrivileges, 1], failure: "no_new_privs can't be set" },
    {
      call: call("seccomp"),
      arguments: [setFilter, 0, { words: [filter.length / 8, { bytes: filter }] }],
      failure: "the filter of system calls can't be loaded",
    },
  ];
  return podShape === "user-namespace" ? [...apart, ...always] : always;
}

/** `struct ifreq` of linux/if.h. */
function interfaceRequest(name: string, flags: number): Buffer {
  const request = Buffer.alloc(interfaceRequestBytes);
  request.write(name, "latin1");
  request.writeUInt16LE(flags, interfaceNameBytes);
  return request;
}

/** What is mounted over the image of a pod in the shape `user-namespace`, by the pod itself. Paths are absolute. */
export interface PodMounts {
  /** Folders that keep the image's content and can be written: what is written is the container's, on the node's disk. */
  readonly onDisk: readonly string[];
  /** Empty folders in memory. `mode` in octal. */
  readonly inMemory: readonly { readonly path: string; readonly sizeMb: number; readonly mode: string }[];
  /** Files at other places. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

/** Lets root make folders in the image that the runtime mounted read-only. Pure. */
export function openingSteps(architecture: SeccompArchitecture): readonly Step[] {
  return [
    ...userNamespaceTest(architecture),
    {
      call: numberOf("mount", architecture),
      // Flags that the runtime has set can't be taken away, and more of them do no harm.
      arguments: [0, text("/"), 0, remount | bind | noSuid | noDevices],
      failure: "/ can't be mounted with the right to write",
    },
  ];
}

/** Makes the mounts. The entering program gives them their flags, and closes the image. Pure. */
export function mountingSteps(
  architecture: SeccompArchitecture,
  { onDisk, inMemory, files }: PodMounts,
): readonly Step[] {
  const call = numberOf("mount", architecture);
  return [
    ...onDisk.map((path) => ({
      call,
      arguments: [text(path), text(path), 0, bind],
      failure: `${path} can't be mounted with what the image has there`,
    })),
    ...inMemory.map(({ path, sizeMb, mode }) => ({
      call,
      arguments: [
        ...[text("tmpfs"), text(path), text("tmpfs"), noSuid | noDevices],
        text(`size=${sizeMb}m,mode=${mode}`),
      ],
      failure: `${path} can't be mounted with a size in memory`,
    })),
    ...files.map(({ from, to }) => ({
      call,
      arguments: [text(from), text(to), 0, bind],
      failure: `${to} can't be mounted with another file`,
    })),
  ];
}

/** AT_FDCWD, O_CLOEXEC. */
const [currentFolder, closeOnExecute] = [-100, 0o200_0000];

/** Ends a program whose root is the node's. Pure. */
const userNamespaceTest = (architecture: SeccompArchitecture): readonly Step[] => [
  {
    call: numberOf("openat", architecture),
    arguments: [currentFolder, text("/proc/self/uid_map"), closeOnExecute],
    failure: "/proc/self/uid_map can't be opened",
  },
  {
    call: numberOf("read", architecture),
    arguments: ["last result", "buffer", 128],
    failure: "/proc/self/uid_map can't be read",
  },
  {
    call: "user namespace test",
    arguments: [],
    failure: "this pod has no user namespace of its own: its node ignores hostUsers",
  },
];

/** An argument of a step: a number, a pointer to bytes or to 64-bit words, or what an earlier step left. */
export type Argument =
  | number
  | bigint
  | { readonly bytes: Uint8Array }
  | { readonly words: readonly Argument[] }
  | "last result"
  | "buffer";

/** A system call that must succeed, or the test of the user namespace's map in the buffer. */
export interface Step {
  /** The call's number on this machine, or the test. */
  readonly call: number | "user namespace test";
  readonly arguments: readonly Argument[];
  /** One line, without its end, for the program's output if the step fails. */
  readonly failure: string;
}

/** The table of `native/enter.c`, which tells what its values mean. */
const rowBytes = 64;
const [lastResult, bufferAddress] = [-2n, -3n];
const [finish, test] = [-1n, -2n];

/** A static program that takes the steps and then becomes the command in its arguments: `native/enter.c`. */
export function stepsProgram(architecture: SeccompArchitecture, steps: readonly Step[]): Buffer {
  const program = readFileSync(new URL(`../native/enter-${architecture}`, import.meta.url));
  const dataAddress = tableAddress(program) + BigInt((steps.length + 1) * rowBytes);
  const data: Buffer[] = [];
  let length = 0;
  const place = (bytes: Uint8Array): bigint => {
    const address = dataAddress + BigInt(length);
    const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    data.push(padded);
    length += padded.length;
    return address;
  };
  const valueFor = (argument: Argument): bigint => {
    if (argument === "last result") return lastResult;
    if (argument === "buffer") return bufferAddress;
    if (typeof argument !== "object") return BigInt(argument);
    return place("bytes" in argument ? argument.bytes : wordsOf(argument.words.map(valueFor)));
  };
  const row = (number: bigint, values: readonly Argument[], failure: string) => {
    const line = Buffer.from(`${failure}\n`);
    const words = [0, 1, 2, 3, 4].map((index) => valueFor(values[index] ?? 0));
    return wordsOf([number, ...words, place(line), BigInt(line.length)]);
  };
  const rows = steps.map((step) =>
    row(step.call === "user namespace test" ? test : BigInt(step.call), step.arguments, step.failure),
  );
  rows.push(row(finish, [], "the command can't be executed"));
  return withTable(program, [...rows, ...data]);
}

function wordsOf(values: readonly bigint[]): Buffer {
  const words = Buffer.alloc(values.length * 8);
  values.forEach((value, index) => {
    words.writeBigUInt64LE(BigInt.asUintN(64, value), index * 8);
  });
  return words;
}

/** A pointer to a text, which ends with NUL. Pure. */
export const text = (content: string): Argument => ({ bytes: Buffer.from(`${content}\0`) });
