import { NotProven } from "@ambit/backend-kit";
import {
  daemon,
  daemonFix,
  lostToDaemon,
  ordersProgram,
  readOrders,
  whyDaemonAnswers,
} from "../inside/daemon.js";
import { outputOn } from "../inside/try-from.js";
import type { CanaryBench, CanaryTrial } from "./bench.js";
import { outputOf } from "./look.js";

/** These claims hold only if no process inside can send requests to the daemon. */
export const daemonTrial: CanaryTrial = {
  shows: lostToDaemon,
  async run(bench) {
    const how = await tryDaemon(bench);
    return Object.fromEntries(lostToDaemon.map((claim) => [claim, how]));
  },
};

const limitMs = 3_000;
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
  const argv = await ordersProgram(account.config.bridge.node, limitMs);
  const control = await repeated(async () => readOrders(await outputOn(limited.machine, argv, limitMs)));
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
