/** What a canary tries in its sandboxes: the network, what is kept from others, secrets, resources, and the platform's own service. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, isIP } from "node:net";
import { halvesOf, lookProgram, type Reached, reachedOf, readLook, startHolder } from "@ambit/attacks/inside";
import { tryInbound } from "@ambit/attacks/standard-probe";
import { freePorts, listeningPort, NotProven } from "@ambit/backend-kit";
import type { Claim } from "../claims.js";
import { allAttempts, idOf, outputOn, reachedIn, tryFrom } from "../inside/attempts.js";
import {
  daemon,
  daemonFix,
  lostToDaemon,
  ordersProgram,
  readOrders,
  whyDaemonAnswers,
} from "../inside/daemon.js";
import { pauseFor } from "../platform/retries.js";
import type { Machine, NetworkChange } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import {
  type CanaryAttempts,
  type CanaryBench,
  type CanaryTrial,
  lookAsProcess,
  lookFromPlatform,
  outputOf,
} from "./bench.js";

const controlFix =
  "set sandbox-daytona's canary.address, .name and .forbidden to targets that a sandbox without limits reaches in this organisation";
const leakFix = "use an organisation that may restrict the network completely, or another sandbox";

export const networkTrials: readonly CanaryTrial[] = [
  {
    shows: ["network.deny"],
    async run(bench) {
      if (bench.unrestricted !== undefined) throw bench.unrestricted;
      const { account, limited } = bench;
      const tried = await untilSettled(bench, async () => {
        // A platform that answers late looks like a limit, so the control is made in the same moment.
        const [control, ...ways] = await Promise.all([
          attempts(bench),
          // Through the platform's own access, and as an agent would.
          tryFrom(limited.machine, allAttempts(account.config.canary), account.config),
          lookAsProcess(bench, allAttempts(account.config.canary)),
        ]);
        return compare(control, ways, []);
      });
      return { "network.deny": `reached without limits, and not under networkBlockAll: ${tried.join(", ")}` };
    },
  },
  {
    shows: ["network.allow-cidr"],
    async run(bench) {
      const { address } = bench.account.config.canary;
      if (isIP(address.host) !== 4) {
        throw new NotProven(
          `${address.host} is no IPv4 address`,
          "set sandbox-daytona's canary.address to one",
        );
      }
      const tried = await phase(
        bench,
        { networkAllowList: `${address.host}/32`, domainAllowList: "" },
        [idOf(address)],
        // The range is listed for any port.
        (id) => id.startsWith(`${address.host}:`),
      );
      const how = `with ${address.host}/32 listed ${idOf(address)} was reached, and none of ${tried.join(", ")}`;
      return { "network.allow-cidr": how };
    },
  },
  {
    shows: ["network.allow-host"],
    async run(bench) {
      const { canary, wildcards } = bench.account.config;
      const { name } = canary;
      const tried = await phase(bench, { networkAllowList: "", domainAllowList: name.host }, [idOf(name)]);
      let how = `with ${name.host} listed ${idOf(name)} was reached, and none of ${tried.join(", ")}`;
      if (wildcards === "allow") {
        const suffix = `*.${name.host}`;
        await setNetwork(bench, { networkAllowList: "", domainAllowList: suffix });
        await untilSettled(bench, async () => {
          const reached = reachedIn(await attempts(bench));
          if (!reached.includes(idOf(name))) return;
          throw new Unsettled(
            `${suffix} lets ${name.host} itself through`,
            'set sandbox-daytona\'s wildcards to "refuse"',
          );
        });
        how += `; with ${suffix} listed it wasn't reached`;
      }
      return { "network.allow-host": how };
    },
  },
];

/** What differs from the rules, or shows nothing, and may only do so because they don't apply yet or an answer was late. */
class Unsettled extends NotProven {}

const againMs = 250;
/** Times in succession that rules must show, since a single answer may be lost or late. */
const wantedTimes = 2;

/**
 * The platform applies its rules after its response: what leaks at first, or is still closed by the rules before, is
 * tried again for a while. So is what a busy platform answers too late.
 */
async function untilSettled<Result>(
  { account, signal }: CanaryBench,
  trial: () => Promise<Result>,
): Promise<Result> {
  const end = performance.now() + account.config.canary.settleMs;
  for (let times = 1; ; times += 1) {
    try {
      const result = await trial();
      if (times >= wantedTimes) return result;
    } catch (error) {
      if (!(error instanceof Unsettled) || performance.now() >= end || signal.aborted) throw error;
      times = 0;
      await pauseFor(againMs, signal);
    }
  }
}

/** Limits the open sandbox, tries everything again, and returns what was reached before but not now. */
async function phase(
  bench: CanaryBench,
  change: NetworkChange,
  allowed: readonly string[],
  ignored: (id: string) => boolean = () => false,
): Promise<readonly string[]> {
  await setNetwork(bench, change);
  return untilSettled(bench, async () => compare(bench.control, [await attempts(bench)], allowed, ignored));
}

/** Without a limit this would prove nothing, so it is read back. */
async function setNetwork({ open }: CanaryBench, change: NetworkChange): Promise<void> {
  await open.machine.setNetwork(change);
  const view = await open.machine.refresh();
  const given = {
    networkAllowList: view.networkAllowList.join(),
    domainAllowList: view.domainAllowList.join(),
  };
  if (given.networkAllowList === change.networkAllowList && given.domainAllowList === change.domainAllowList)
    return;
  throw new NotProven(
    `asked for ${JSON.stringify(change)}, Daytona answers ${JSON.stringify(given)}`,
    "use an organisation that may restrict the network, or another sandbox",
  );
}

function attempts({ open, account }: CanaryBench): Promise<Reached> {
  return tryFrom(open.machine, allAttempts(account.config.canary), account.config);
}

/**
 * @param allowed must be reached; nothing else may be. A lookup isn't a connection: it counts only if nothing is allowed.
 * @returns what was reached without limits but not with them.
 */
function compare(
  control: Reached,
  limited: readonly Reached[],
  allowed: readonly string[],
  ignored: (id: string) => boolean = () => false,
): readonly string[] {
  const before = reachedIn(control);
  const missing = allowed.filter((id) => !before.includes(id));
  if (missing.length > 0) {
    throw new Unsettled(`${missing.join(", ")} isn't reached without limits either`, controlFix);
  }
  const counts = (id: string) =>
    !allowed.includes(id) && !ignored(id) && (allowed.length === 0 || !id.startsWith("lookup of "));
  const tried = before.filter(counts);
  if (tried.length === 0) {
    throw new Unsettled(
      "nothing that must fail is reached without limits, so nothing shows them",
      controlFix,
    );
  }
  for (const outcomes of limited) {
    const after = reachedIn(outcomes);
    const leaks = after.filter(counts);
    if (leaks.length > 0) {
      throw new Unsettled(
        `${leaks.map((id) => `${id} (${outcomes[id]})`).join(", ")} is reached nevertheless`,
        leakFix,
      );
    }
    const lost = allowed.filter((id) => !after.includes(id));
    if (lost.length > 0) {
      throw new Unsettled(`${lost.join(", ")} is listed and not reached`, controlFix);
    }
  }
  return tried;
}

const imageFix = "use a snapshot or image whose user is root and that has Node.js 18 or newer";
const platformFix = "check what kind of sandbox this is: Ambit expects a separate machine for each";

/** Milliseconds that a platform may take to start a process after it has accepted its command. */
const startsWithinMs = 5_000;

/** A text of other processes. */
const ofOthers = (text: string): CanaryAttempts => ({
  arguments: { try: "arguments", halves: halvesOf(text) },
  environment: { try: "environment", halves: halvesOf(text) },
});

/** Whether the decoy is seen in its own sandbox. A busy platform may start it after a search began. */
async function isSeen(bench: CanaryBench, attempts: CanaryAttempts): Promise<boolean> {
  const end = performance.now() + startsWithinMs;
  for (;;) {
    if (reachedOf(await lookFromPlatform(bench, bench.open.machine, attempts)) !== "") return true;
    if (performance.now() > end) return false;
    await pauseFor(100, bench.signal);
  }
}

export const isolationTrials: readonly CanaryTrial[] = [
  {
    shows: ["environment.named-only"],
    async run(bench) {
      const attempts: CanaryAttempts = {
        variable: { try: "ownEnvironment", halves: halvesOf(bench.decoys.variable) },
        names: { try: "names" },
      };
      const bare = await lookFromPlatform(bench, bench.limited.machine, attempts);
      if ((bare.variable ?? null) === null) {
        throw new NotProven(
          "a variable of the sandbox isn't in the environment of the platform's own processes",
          imageFix,
        );
      }
      const { variable = null, names: list } = await lookAsProcess(bench, attempts, { AMBIT_NAMED: "1" });
      const names = (list ?? "").split(",");
      const platforms = names.filter((name) => name.startsWith("DAYTONA_"));
      if (variable !== null || platforms.length > 0 || !names.includes("AMBIT_NAMED")) {
        throw new NotProven(`a process was given ${names.join(", ")}`, imageFix);
      }
      return {
        "environment.named-only":
          "a variable of the sandbox was in the environment of the platform's own processes, and not in a process of the run",
      };
    },
  },
  {
    shows: ["environment.per-tool"],
    async run(bench) {
      const { facts } = bench.sandbox;
      if (!facts.ownUsers) {
        throw new NotProven(`processes share a user (${facts.whyShared ?? "no reason given"})`, imageFix);
      }
      const text = randomUUID();
      const own: CanaryAttempts = { own: { try: "ownEnvironment", halves: halvesOf(text) } };
      if (reachedOf(await lookAsProcess(bench, own, { TOOL_VALUE: text })) === "") {
        throw new NotProven("a process doesn't see its own environment in /proc", imageFix);
      }
      const { sandbox, account, signal } = bench;
      const holder = await startHolder(
        sandbox,
        { probe: { node: account.config.bridge.node }, signal },
        "tool",
      );
      try {
        const seen = reachedOf(await lookAsProcess(bench, holder.find));
        if (seen !== "") throw new NotProven(`a process reads another's ${seen}`, imageFix);
      } finally {
        await holder.process.kill();
      }
      return {
        "environment.per-tool":
          "a value was found by its own process in /proc; by no other while it ran, in its scratch neither",
      };
    },
  },
  {
    shows: ["process.contained"],
    async run(bench) {
      const { open, limited, decoys, account } = bench;
      const session = `ambit-${randomUUID()}`;
      await open.machine.startSession(session);
      const sleep = [account.config.bridge.node, "-e", "setTimeout(() => {}, 60000)", decoys.process];
      await open.machine.startInSession(session, shellLine(sleep));
      const attempts = ofOthers(decoys.process);
      const isVisible = await isSeen(bench, attempts);
      const far = [
        await lookAsProcess(bench, attempts),
        await lookFromPlatform(bench, limited.machine, attempts),
      ];
      await open.machine.endSession(session);
      if (!isVisible) {
        throw new NotProven("a process isn't seen in its own sandbox either", imageFix);
      }
      if (far.some((seen) => reachedOf(seen) !== "")) {
        throw new NotProven("a process of one sandbox was seen in another", platformFix);
      }
      return { "process.contained": "a process was seen in its own sandbox, and not in another" };
    },
  },
];

const folders = ["/tmp", "/home", "/etc", "/run", "/var/tmp", "/root"];

/** Everywhere that a process may read. */
function anywhere(text: string): CanaryAttempts {
  const halves = halvesOf(text);
  return {
    own: { try: "ownEnvironment", halves },
    environment: { try: "environment", halves },
    arguments: { try: "arguments", halves },
    files: { try: "holding", folders, halves },
  };
}

/** Proves that the value isn't inside. That it arrives at its hosts can't be shown without such a host. */
export const secretTrials: readonly CanaryTrial[] = [
  {
    shows: ["secrets.hidden"],
    async run(bench) {
      if (bench.withoutSecret !== undefined) throw bench.withoutSecret;
      const { limited, decoys } = bench;
      const placeholder = limited.secrets.placeholders.canary;
      if (placeholder === undefined || placeholder.includes(decoys.secret)) {
        throw new NotProven("Daytona provided no placeholder for a secret", "use another sandbox");
      }
      const {
        variable = null,
        stands = null,
        ...secret
      } = await lookFromPlatform(bench, limited.machine, {
        variable: { try: "ownEnvironment", halves: halvesOf(decoys.variable) },
        stands: { try: "ownEnvironment", halves: halvesOf(placeholder) },
        ...anywhere(decoys.secret),
      });
      if (variable === null || stands === null) {
        throw new NotProven(
          "a secret's placeholder isn't in the environment of the platform's own processes",
          "use an organisation with secrets, or another sandbox",
        );
      }
      const places = reachedOf(secret) || reachedOf(await lookAsProcess(bench, anywhere(decoys.secret)));
      if (places !== "") throw new NotProven(`a secret's value is at ${places}`, "use another sandbox");
      return {
        "secrets.hidden":
          "in environments, processes and files a plain variable was found, and of a secret only its placeholder",
      };
    },
  },
];

/** Sizes of the limited and the open sandbox, in a boundary's units. */
export const sizes = {
  limited: { memoryMb: 1_024, cpus: 1, diskMb: 1_024 },
  open: { memoryMb: 2_048, cpus: 2, diskMb: 2_048 },
} as const;

/** MiB, between the two sizes. */
const mib = 1_280;
/** Hundredths of a core, between the two sizes; close to the small one, for busy hosts. */
const between = 120;
/** Other load slows the large one down, so the best of several measurements is taken. */
const rounds = 3;
const measureLimitMs = 60_000;
const resourceFix = "check the organisation's sandbox settings, or omit this limit";

/** Last, since a process that runs out of memory may end the bridge too. */
export const resourceTrials: readonly CanaryTrial[] = [
  resourceTrial(
    "resources.memory",
    { used: { try: "memory", mib } },
    mib,
    (amount) => `${amount} MiB of memory`,
  ),
  resourceTrial(
    "resources.cpu",
    { used: { try: "cpu", ms: 1_000, threads: 4 } },
    between,
    (amount) => `${amount / 100} cores`,
  ),
  resourceTrial("resources.disk", { used: { try: "disk", mib } }, mib, (amount) => `${amount} MiB of disk`),
];

/** @param say the amount in words. */
function resourceTrial(
  capability: Claim,
  attempts: CanaryAttempts,
  threshold: number,
  say: (amount: number) => string,
): CanaryTrial {
  return {
    shows: [capability],
    async run({ open, limited, account }: CanaryBench) {
      const argv = await lookProgram(account.config.bridge.node, attempts);
      let [much, little] = [0, 0];
      for (let round = 0; round < rounds && much < threshold; round += 1) {
        // Sequential: in parallel they would slow each other down.
        much = Math.max(much, await amountIn(open.machine, argv));
        little = Math.max(little, await amountIn(limited.machine, argv));
      }
      if (much < threshold) {
        throw new NotProven(`a sandbox of twice the size didn't give ${say(threshold)}`, resourceFix);
      }
      if (little >= threshold) {
        throw new NotProven(`a sandbox with less gave ${say(little)}`, resourceFix);
      }
      const rest = little === 0 ? "not in a small one" : `${say(little)} in a small one`;
      return { [capability]: `${say(much)} could be used in a large sandbox, and ${rest}` };
    },
  };
}

/** The amount that was used; 0 if the program was refused it, or killed for it. */
async function amountIn(machine: Machine, argv: readonly [string, ...string[]]): Promise<number> {
  const { exitCode, output } = await machine.execute(shellLine(argv), measureLimitMs);
  return exitCode === 0 ? Number.parseFloat(readLook(output).used ?? "0") : 0;
}

/** These claims hold only if no process inside can send requests to the daemon. */
export const daemonTrial: CanaryTrial = {
  shows: lostToDaemon,
  async run(bench) {
    const how = await tryDaemon(bench);
    return Object.fromEntries(lostToDaemon.map((claim) => [claim, how]));
  },
};

const ordersLimitMs = 3_000;
/** A busy platform may answer the control too late. Until the control works, nothing that a tool can't do is shown. */
const controlAttempts = 3;

/**
 * Sends requests to the daemon: through the platform's own access, where they must be accepted, then as a tool and as
 * the agent.
 *
 * @returns what was observed.
 * @throws NotProven if a process of the sandbox reaches it.
 */
async function tryDaemon(bench: CanaryBench): Promise<string> {
  const { sandbox, limited, account } = bench;
  const argv = await ordersProgram(account.config.bridge.node, ordersLimitMs);
  const control = await repeated(async () =>
    readOrders(await outputOn(limited.machine, argv, ordersLimitMs)),
  );
  if (control.printed === null) {
    throw new NotProven(
      `Daytona's daemon refuses requests on ${daemon.ports[0]} from the platform's own processes too, so nothing is proven`,
      "report the version of Daytona to Ambit's maintainers",
    );
  }
  const reason = whyDaemonAnswers(sandbox.facts);
  if (reason !== undefined) throw new NotProven(reason, daemonFix);
  for (const role of ["tool", "agent"] as const) {
    const seen = readOrders(await outputOf(bench, argv, role));
    if (seen.open.length > 0 || seen.printed !== null) {
      throw new NotProven(
        `a process of the ${role}'s reaches Daytona's daemon on ${seen.open.join(", ")}`,
        daemonFix,
      );
    }
  }
  return `Daytona's daemon accepted requests of root on ${control.open.join(", ")}, and none of a tool or an agent`;
}

async function repeated<Control extends { readonly printed: string | null }>(
  tryOnce: () => Promise<Control>,
): Promise<Control> {
  for (let left = controlAttempts - 1; ; left -= 1) {
    const control = await tryOnce();
    if (control.printed !== null || left === 0) return control;
  }
}

/** As on every other backend, with a sandbox of its own, since it is closed in the end. */
export const inboundTrial: CanaryTrial = {
  shows: ["inbound.ports"],
  async run(bench: CanaryBench) {
    const secret = `ambit-decoy-${randomUUID()}`;
    const decoy = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => socket.end(secret));
    });
    try {
      await once(decoy.listen(0, "127.0.0.1"), "listening");
      const ofHost = listeningPort(decoy);
      const [own = 0, others = 0, unlisted = 0] = await freePorts(3);
      const listed = [own, others, ofHost];
      const one = await bench.openAnother(listed);
      bench.letIn(listed);
      const ports = { own, others, unlisted, ofHost };
      const probe = { node: bench.account.config.bridge.node };
      return await tryInbound({ probe, signal: bench.signal, one, other: bench.sandbox, ports, secret });
    } finally {
      decoy.close();
    }
  },
};
