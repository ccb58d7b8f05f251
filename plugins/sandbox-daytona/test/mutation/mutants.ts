import type { Capability } from "@ambit/core/plugin";
import type { LoopbackOptions } from "@ambit/daytona-loopback";
import type { GuestChange, Order, PlatformChange } from "./changing-platform.ts";

/** One mechanism that is taken out: of what the platform is ordered, of what it does, of the guest daemon, or of the bridge. */
export interface Mutant {
  readonly name: string;
  readonly of: "order" | "platform" | "guest daemon" | "bridge";
  readonly change?: PlatformChange;
  /** The loopback without it. Default: one that all mutants share that need no other. */
  readonly loopback?: LoopbackOptions;
  /** Default: a snapshot whose user is root. */
  readonly snapshot?: string;
  /** What is no longer enforced; empty for what no capability of a run rests on: only a start notices. */
  readonly breaks: readonly Capability[];
  /** What the canary has to say, with its fix. */
  readonly reason: RegExp;
}

const networks = ["network.deny", "network.allow-cidr", "network.allow-host"] as const;
const byDaemon = [
  "environment.per-tool",
  "environment.named-only",
  "process.contained",
  "secrets.hidden",
] as const;
const leaked = /is reached nevertheless/;

/** Settings of an order, with values that limit nothing. */
const ordered = (name: string, value: unknown, breaks: readonly Capability[], reason: RegExp): Mutant => ({
  name: `\`${name}\``,
  of: "order",
  change: { order: (order) => (name in order ? { ...order, [name]: value } : order) },
  breaks,
  reason,
});

const platform = (name: string, organization: LoopbackOptions["organization"], reason: RegExp): Mutant => ({
  name,
  of: "platform",
  loopback: { organization },
  breaks: networks,
  reason,
});

const guest = (
  name: string,
  guest: readonly GuestChange[],
  breaks: readonly Capability[],
  reason: RegExp,
): Mutant => ({
  name,
  of: "guest daemon",
  change: { guest },
  breaks,
  reason,
});

/** Beside the placeholders. */
const withValues = (order: Order, secretOf: (secret: string) => string): Order => {
  const mounts: readonly Record<string, string>[] = Array.isArray(order.secrets) ? order.secrets : [];
  const names = mounts.flatMap((mount) => Object.values(mount));
  const values = names.map((name, index) => [`VALUE_${index}`, secretOf(name)]);
  return { ...order, env: { ...Object(order.env), ...Object.fromEntries(values) } };
};

const rules: GuestChange = { find: "reject with tcp reset", replace: "accept" };
const seesPorts: GuestChange = {
  find: 'resolve(JSON.parse(Buffer.concat(said).toString("utf8")))',
  replace: "resolve([])",
};
const hidesProcesses: GuestChange = { find: "remount,hidepid=2,gid=0", replace: "remount,hidepid=0,gid=0" };

/** The mode of its folders, and that of what it writes there. */
const openFiles: readonly GuestChange[] = [
  { find: "{mode:448}),user!==void 0", replace: "{mode:493}),user!==void 0" },
  { find: "process.umask(7)", replace: "process.umask(0)" },
];

export const mutants: readonly Mutant[] = [
  ordered("networkBlockAll", false, ["network.deny"], leaked),
  ordered("networkAllowList", "", ["network.allow-cidr"], leaked),
  ordered("domainAllowList", "", ["network.allow-host"], leaked),
  ordered("public", true, [], /^$/),
  ordered("labels", { ambit: "sandbox" }, [], /^$/),
  ordered("autoDeleteInterval", -1, [], /^$/),
  {
    name: "placeholders instead of secrets",
    of: "platform",
    change: { order: withValues },
    breaks: ["secrets.hidden"],
    reason: /a secret's value is at/,
  },
  platform("limits of IPv6", { leaks: ["ipv6"] }, /an IPv6 address of its own/),
  platform("limits of datagrams", { leaks: ["datagrams"] }, /a datagram was answered/),
  platform("limits of the gateway", { leaks: ["gateway"] }, /its gateway \(.*:8080 connected\)/),
  platform(
    "limits of essential services",
    { essentials: ["other.example.test"] },
    /other\.example\.test:80 \(HTTP 200\)/,
  ),
  {
    ...platform(
      "a resolver that a sandbox without a network doesn't reach",
      { openResolver: true },
      /lookup of /,
    ),
    breaks: ["network.deny"],
  },
  {
    name: "a machine for each sandbox",
    of: "platform",
    change: { isOneMachine: true },
    breaks: ["process.contained"],
    reason: /a process of one sandbox was seen in another/,
  },
  {
    name: "deletion",
    of: "platform",
    change: { keepsDeleted: true },
    breaks: ["process.contained"],
    reason: /a deleted sandbox is still started/,
  },
  {
    name: "root as the image's user",
    of: "platform",
    snapshot: "daytona-small",
    breaks: byDaemon,
    reason:
      /share a user.*whose user is root|accepts requests of every process inside, on 2280.*nftables or iptables/,
  },
  {
    name: "root's right to set rules inside",
    of: "platform",
    snapshot: "unprivileged",
    breaks: byDaemon,
    reason: /share a user|accepts requests of every process inside, on 2280, 22220, 22222, 33333/,
  },
  guest(
    "rules that keep processes from the platform's daemon",
    [rules],
    byDaemon,
    /accepts requests of every process/,
  ),
  guest(
    "these rules, and their own check",
    [rules, seesPorts],
    byDaemon,
    /a process of the tool's reaches Daytona's daemon on 2280, 22220, 22222, 33333/,
  ),
  guest(
    "a user for each process",
    [{ find: "uid:firstUser+1+number", replace: "uid:firstUser+1" }],
    ["environment.per-tool"],
    /a process reads another's .*environment/,
  ),
  guest("hidden processes of other users", [hidesProcesses], ["environment.per-tool"], /share a user/),
  guest(
    "hidden processes, and their own check",
    [
      hidesProcesses,
      {
        find: "function hidesProcesses(user){return ",
        replace: "function hidesProcesses(user){return true||",
      },
    ],
    ["environment.per-tool"],
    /a process reads another's arguments/,
  ),
  guest(
    "private files of a process",
    openFiles,
    ["environment.per-tool"],
    /share a user \(what one user writes to/,
  ),
  guest(
    "private files of a process, and their own check",
    [
      ...openFiles,
      { find: "function isolateTmp(writer,reader,mayChange){", replace: "function isolateTmp(){return;" },
    ],
    ["environment.per-tool"],
    /a process reads another's .*own folders/,
  ),
  guest(
    "a cleared environment",
    [{ find: "env:{...request.env,HOME", replace: "env:{...process.env,...request.env,HOME" }],
    ["environment.named-only"],
    /a process was given .*AMBIT_CANARY/,
  ),
];

/** Of sandboxes from an image. One canary shows all of them, each by a trial of its own. */
export const sizeMutants: readonly Mutant[] = [
  ordered("memory", 8, ["resources.memory"], /a sandbox with less gave \d+ MiB of memory/),
  ordered("cpu", 4, ["resources.cpu"], /a sandbox with less gave [\d.]+ cores/),
  ordered("disk", 10, ["resources.disk"], /a sandbox with less gave \d+ MiB of disk/),
];
