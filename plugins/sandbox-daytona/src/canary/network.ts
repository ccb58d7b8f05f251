import { isIP } from "node:net";
import type { Reached } from "@ambit/attacks/inside";
import { NotProven } from "@ambit/backend-kit";
import { allAttempts, idOf, reachedIn } from "../inside/attempts.js";
import { tryFrom } from "../inside/try-from.js";
import { pauseFor } from "../platform/retries.js";
import type { NetworkChange } from "../platform/service.js";
import type { CanaryBench, CanaryTrial } from "./bench.js";
import { lookAsProcess } from "./look.js";

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
