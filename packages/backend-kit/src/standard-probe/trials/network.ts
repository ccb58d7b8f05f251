import { EgressRules } from "../../probe/egress-rules.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { Bench, Trial } from "../bench.js";
import { type Attempts, lookInside, lookOutside, reachedOf } from "../look.js";

export const networkTrial: Trial = {
  shows: ["network.deny"],
  async run(bench) {
    const { decoys } = bench;
    const hosts = decoys.addresses.map((host) => [
      `connect ${host}`,
      { try: "connect", host, port: decoys.otherPort },
    ]);
    const attempts: Attempts = { ...Object.fromEntries(hosts), links: { try: "links" } };
    const control = await lookOutside(bench, attempts);
    expectConclusive(
      Object.entries(control).some(([id, what]) => id.startsWith("connect ") && what !== null),
      "nothing of this host answers a plain process",
    );
    const { filter, kernel, ...seen } = await lookInside(await bench.closed(), bench, {
      ...attempts,
      "a name": { try: "resolve", host: "example.com" },
      filter: { try: "status", field: "Seccomp" },
      kernel: { try: "kernel" },
    });
    expectThat(reachedOf(seen) === "", `reached in a sandbox without a network: ${reachedOf(seen)}`);
    const isGvisor = kernel?.includes("PST 2016") === true;
    expectThat(
      filter === "2" || isGvisor,
      "no filter of system calls holds inside, so vsock and io_uring are open",
    );
    const by = isGvisor ? "gVisor's own kernel" : "a filter of system calls";
    return {
      "network.deny": `this host answered a plain process, and nothing answered in a sandbox: no link but lo, no name; ${by} refuses other families`,
    };
  },
};

export const listsTrial: Trial = {
  shows: ["network.allow-cidr", "network.allow-host"],
  async run(bench) {
    const { host, listedPort, otherPort, secret: says } = bench.decoys;
    const seen = await lookInside(await bench.listed(), bench, {
      address: { try: "proxied", host, port: listedPort, says },
      name: { try: "proxied", host: "localhost", port: listedPort, says },
      "its neighbour": { try: "proxied", host, port: otherPort, says },
      "another name": { try: "proxied", host: "localhost.example.com", port: listedPort, says },
      directly: { try: "connect", host, port: listedPort },
      links: { try: "links" },
    });
    const { address, name, ...rest } = seen;
    expectThat(reachedOf(rest) === "", `reached although it isn't listed: ${reachedOf(rest)}`);
    expectConclusive(
      address === says && name === says,
      "what is listed didn't answer through the runner's proxy",
    );
    const tried = await rulesTried(bench);
    const how = "answered through the runner's proxy; what isn't listed, and every direct way, was refused";
    return {
      "network.allow-cidr": `a listed address ${how}`,
      "network.allow-host": `a listed name ${how}${tried ? `; ${EgressRules.shown}` : ""}`,
    };
  },
};

/** Whether the rules for names could be tried: they need the listener's address on the list. */
async function rulesTried(bench: Bench): Promise<boolean> {
  const { listedPort: port, secret: says } = bench.decoys;
  const needed = ["network.allow-cidr", "network.allow-host"] as const;
  if (!needed.every((capability) => bench.probe.claims.includes(capability))) return false;
  const complaints = [false, true].map(async (isWide) => {
    const rules = new EgressRules();
    const sandbox = await bench.open({ network: EgressRules.boundary(port, isWide) }, rules);
    const attempts = EgressRules.hosts.map((host) => [host, { try: "proxied", host, port, says }] as const);
    const seen = await lookInside(sandbox, bench, Object.fromEntries(attempts));
    return rules.complaint(EgressRules.hosts.filter((host) => seen[host] === says));
  });
  for (const complaint of await Promise.all(complaints)) expectThat(complaint === undefined, complaint ?? "");
  return true;
}
