import { constants } from "node:os";
import { allowedCalls, type SeccompArchitecture, syscallNumber } from "@ambit/attacks/system-calls";
import {
  allowedNumbers,
  assemble,
  filterStatements,
  type SeccompRule,
  seccompRules,
  setIdRules,
} from "@ambit/backend-kit/system-call-filter";
import { type Argument, type Step, stepsProgram } from "./program.js";
import type { PodShape } from "./shape.js";

/** Capabilities that only this program uses: what it starts can never have them again. */
const ownRights = { SYS_ADMIN: 21, NET_ADMIN: 12, SETPCAP: 8 } as const;
export const enteringCapabilities = Object.keys(ownRights);

/** CLONE_NEWNET; AF_INET, SOCK_DGRAM | SOCK_CLOEXEC; SIOCSIFFLAGS; IFF_UP | IFF_RUNNING. */
const [newNetwork, internet, datagram, setFlags, isUp] = [0x4000_0000, 2, 0x8_0002, 0x8914, 0x41];
/** MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND. */
const [noSuid, noDevices, noPrograms, remount, bind] = [2, 4, 8, 32, 4096];
/** PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS; SECCOMP_SET_MODE_FILTER; AT_FDCWD, O_CLOEXEC. */
const [dropRight, noNewPrivileges, setFilter, currentFolder, closeOnExecute] = [24, 38, 1, -100, 0o200_0000];
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
  /** With files of the run: they get `nosuid` and `nodev`. */
  readonly folders: readonly string[];
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
  { podShape, isNetworkOpen, folders }: Entering,
): readonly Step[] {
  const call = (name: string) => numberOf(name, architecture);
  const text = (words: string): Argument => ({ bytes: Buffer.from(`${words}\0`) });
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
    {
      call: call("openat"),
      arguments: [currentFolder, text("/proc/self/uid_map"), closeOnExecute],
      failure: "/proc/self/uid_map can't be opened",
    },
    {
      call: call("read"),
      arguments: ["last result", "buffer", 128],
      failure: "/proc/self/uid_map can't be read",
    },
    {
      call: "user namespace test",
      arguments: [],
      failure: "this pod has no user namespace of its own: its node ignores hostUsers",
    },
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

function numberOf(name: string, architecture: SeccompArchitecture): number {
  const known = allowedCalls.find((one) => one.name === name)?.numbers[architecture];
  const number = known ?? (isRuled(name) ? syscallNumber(name, architecture) : undefined);
  if (number === undefined) throw new Error(`no number of the system call ${name} is known`);
  return number;
}

const ruled = ["unshare", "mount", "ioctl", "socket"] as const;
const isRuled = (name: string): name is (typeof ruled)[number] => ruled.some((one) => one === name);
