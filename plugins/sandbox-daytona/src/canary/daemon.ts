import { NotProven } from "@ambit/backend-kit";
import { z } from "zod";
import { daemon, daemonFix, lostToDaemon, whyDaemonAnswers } from "../inside/daemon.js";
import { lastJson, programLine } from "../inside/programs.js";
import { runInside } from "../inside/try-from.js";
import type { Bench, Trial } from "./bench.js";
import { outputOf } from "./programs.js";

/** These claims hold only if no process inside can send requests to the daemon. */
export const daemonTrial: Trial = {
  shows: lostToDaemon,
  async run(bench) {
    const how = await tryDaemon(bench);
    return Object.fromEntries(lostToDaemon.map((claim) => [claim, how]));
  },
};

const ordersSchema = z.strictObject({
  /** Ports that accepted a connection. */
  open: z.array(z.int()),
  /** What the daemon printed for the request; null if it refused. */
  printed: z.string().nullable(),
});

const limitMs = 3_000;

/**
 * Sends requests to the daemon: through the platform's own access, where they must be accepted, then as a tool and as
 * the agent.
 *
 * @returns what was observed.
 * @throws NotProven if a process of the sandbox reaches it.
 */
async function tryDaemon(bench: Bench): Promise<string> {
  const { sandbox, limited, account, signal } = bench;
  const { node } = account.config.bridge;
  const order = { ports: daemon.ports, limitMs };
  const control = ordersSchema.parse(await runInside(limited.machine, node, "orders", order, limitMs));
  if (control.printed === null) {
    throw new NotProven(
      `Daytona's daemon refuses requests on ${daemon.ports[0]} from the platform's own processes too, so nothing is proven`,
      "report the version of Daytona to Ambit's maintainers",
    );
  }
  const reason = whyDaemonAnswers(sandbox.facts);
  if (reason !== undefined) throw new NotProven(reason, daemonFix);
  const argv = await programLine(node, "orders", order);
  for (const role of ["tool", "agent"] as const) {
    const seen = ordersSchema.parse(lastJson(await outputOf(sandbox, argv, signal, {}, role)));
    if (seen.open.length > 0 || seen.printed !== null) {
      throw new NotProven(
        `a process of the ${role}'s reaches Daytona's daemon on ${seen.open.join(", ")}`,
        daemonFix,
      );
    }
  }
  return `Daytona's daemon accepted requests of root on ${control.open.join(", ")}, and none of a tool or an agent`;
}
