import { type Attempts, reachedOf } from "../../inside/attempts.js";
import { lookOutside, tryInside } from "../../inside/look.js";
import { EgressRules } from "../../probe/egress-rules.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import { numberOf } from "../../system-calls/index.js";
import type { StandardBench, StandardTrial } from "../bench.js";
import { callInside, killed, type SystemCallResult } from "../kernel.js";
import type { ProbeTarget } from "../standard-probe.js";

export const networkTrial: StandardTrial = {
  shows: ["network.deny"],
  async run(bench) {
    const { beyond = [] } = bench.probe;
    const { targets, reached, links } = await bench.targets();
    const { abstractName, host, otherPort, secret: says } = bench.decoys;
    const socket: Attempts =
      abstractName === undefined ? {} : { "an abstract socket": { try: "local", name: abstractName } };
    if (abstractName !== undefined)
      expectConclusive(
        reachedOf(await lookOutside(bench, socket)) !== "",
        "a plain process doesn't reach an abstract socket of this host either",
      );
    const dials = dialsOf([...targets, ...beyond]);
    const seen = await tryInside(await bench.closed(), bench, {
      ...dials,
      links: { try: "links" },
      ...socket,
      "a name": { try: "resolve", host: "example.com" },
      "the runner's proxy": { try: "proxied", host, port: otherPort, says },
    });
    const isClosedByPolicy = (seen.links ?? null) !== null && beyond.length > 0;
    const through = isClosedByPolicy ? { ...seen, links: null } : seen;
    expectThat(reachedOf(through) === "", `reached in a sandbox without a network: ${reachedOf(through)}`);
    if (isClosedByPolicy) {
      await expectBeyondReached(bench);
      expectConclusive(
        reached !== undefined,
        "a sandbox without limits reaches neither this host nor another sandbox",
      );
      return {
        "network.deny": `a sandbox without limits reached ${reached.what} and ${beyond.length} addresses beyond, and one without a network none of them; ${await otherSocketsRefused(bench)}`,
      };
    }
    const nothing =
      "in a sandbox without a network nothing answered: no link but lo, no name, no abstract socket";
    if (reached !== undefined)
      return { "network.deny": `a sandbox without limits reached ${reached.what}; ${nothing}` };
    if (links !== null)
      return { "network.deny": `a sandbox without limits has the link ${links}; ${nothing}` };
    // A deployer may give sandboxes no network at all.
    const control = await lookOutside(bench, dials);
    expectConclusive(reachedOf(control) !== "", "nothing of this host answers a plain process");
    return { "network.deny": `this host answered a plain process; ${nothing}` };
  },
};

const dialsOf = (targets: readonly ProbeTarget[]): Attempts =>
  Object.fromEntries(
    targets.map(({ host, port }) => [`connect ${host} ${port}`, { try: "connect", host, port }]),
  );

/** The control of what a policy closes: a sandbox without limits reaches it. */
async function expectBeyondReached(bench: StandardBench): Promise<void> {
  const { beyond = [] } = bench.probe;
  const open = await tryInside(await bench.unlimited(), bench, dialsOf(beyond));
  const missed = beyond.filter(({ host, port }) => (open[`connect ${host} ${port}`] ?? null) === null);
  const names = missed.map(({ host, port }) => `${host}:${port}`).join(", ");
  expectConclusive(missed.length === 0, `a sandbox without limits doesn't reach ${names} either`);
}

/** Of AF_INET and AF_INET6: SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_DCCP; protocols of linux/in.h. */
const otherSockets: readonly { readonly name: string; readonly arguments: readonly bigint[] }[] = [
  { name: "ICMP", arguments: [2n, 2n, 1n] },
  { name: "ICMPv6", arguments: [10n, 2n, 58n] },
  { name: "SCTP", arguments: [2n, 1n, 132n] },
  { name: "SCTP in packets", arguments: [2n, 5n, 0n] },
  { name: "SCTP over IPv6", arguments: [10n, 1n, 132n] },
  { name: "DCCP", arguments: [2n, 6n, 33n] },
  { name: "UDP-Lite", arguments: [2n, 2n, 136n] },
  { name: "MPTCP", arguments: [2n, 1n, 262n] },
];

/**
 * What a policy says of other protocols than TCP and UDP is up to the network that enforces it: a limited sandbox must have no
 * socket of them. @returns what was shown, and of which the kernel has none.
 */
async function otherSocketsRefused(bench: StandardBench): Promise<string> {
  const number = numberOf("socket", (await bench.kernel()).machine);
  const calls = otherSockets.map((one) => ({ number, arguments: one.arguments }));
  const [open, closed] = [
    await callInside(await bench.unlimited(), bench, calls),
    await callInside(await bench.closed(), bench, calls),
  ];
  const namesOf = (results: readonly SystemCallResult[], isOpen: boolean) =>
    otherSockets
      .filter((_, index) => {
        const result = results[index] ?? killed;
        return (result !== killed && result >= 0) === isOpen;
      })
      .map(({ name }) => name)
      .join(", ");
  const left = namesOf(closed, true);
  expectThat(left === "", `a sandbox without a network has sockets that a policy may not close: ${left}`);
  const [control, absent] = [namesOf(open, true), namesOf(open, false)];
  return `it has sockets of TCP and UDP only (without limits also ${control || "no other"}; not tried, since not even there: ${absent || "none"})`;
}

export const listsTrial: StandardTrial = {
  shows: ["network.allow-cidr", "network.allow-host"],
  async run(bench) {
    const { host, listedPort, otherPort, secret: says } = bench.decoys;
    const { beyond = [] } = bench.probe;
    // A policy may close its neighbours' addresses of one family only.
    const near = beyond.length > 0 ? (await bench.targets()).targets : [];
    const seen = await tryInside(await bench.listed(), bench, {
      ...dialsOf([...near, ...beyond]),
      address: { try: "proxied", host, port: listedPort, says },
      name: { try: "proxied", host: "localhost", port: listedPort, says },
      "its neighbour": { try: "passed", host, port: otherPort },
      "the next address": { try: "passed", host: "127.0.0.2", port: listedPort },
      "another name": { try: "passed", host: "localhost.example.com", port: listedPort },
      directly: { try: "connect", host, port: otherPort },
      links: { try: "links" },
    });
    const { address, name, links = null, ...others } = seen;
    // A policy closes a link that stays, which the addresses beyond show.
    const isClosedByPolicy = links !== null && beyond.length > 0;
    if (isClosedByPolicy) await expectBeyondReached(bench);
    const rest = isClosedByPolicy ? others : { ...others, links };
    expectThat(reachedOf(rest) === "", `reached although it isn't listed: ${reachedOf(rest)}`);
    expectConclusive(address === says, "the listed address didn't answer through the runner's proxy");
    const tried = await rulesTried(bench);
    // A minimal system has no /etc/hosts, and so no localhost. The rules bring names of their own, one of which answers.
    expectConclusive(name === says || tried, "the listed name didn't answer through the runner's proxy");
    const how = "answered through the runner's proxy; what isn't listed was refused, there and directly";
    return {
      "network.allow-cidr": `a listed address ${how}`,
      "network.allow-host": `a listed name ${how}${tried ? `; ${EgressRules.shown}` : ""}`,
    };
  },
};

/** Whether the rules for names could be tried: they need the listener's address on the list. */
async function rulesTried(bench: StandardBench): Promise<boolean> {
  const { listedPort: port, secret: says } = bench.decoys;
  const needed = ["network.allow-cidr", "network.allow-host"] as const;
  if (!needed.every((capability) => bench.probe.claims.includes(capability))) return false;
  const complaints = [false, true].map(async (isWide) => {
    const rules = new EgressRules();
    const sandbox = await bench.open({ network: EgressRules.boundary(port, isWide) }, rules);
    const attempts = EgressRules.hosts.map((host) => [host, { try: "proxied", host, port, says }] as const);
    const seen = await tryInside(sandbox, bench, Object.fromEntries(attempts));
    return rules.complaint(EgressRules.hosts.filter((host) => seen[host] === says));
  });
  for (const complaint of await Promise.all(complaints)) expectThat(complaint === undefined, complaint ?? "");
  return true;
}
