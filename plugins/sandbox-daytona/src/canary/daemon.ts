import { NotProven } from "@ambit/backend-kit";
import { z } from "zod";
import { daemon, daemonFix, fallsWithDaemon, whyDaemonAnswers } from "../inside/daemon.js";
import { lastJson, programLine } from "../inside/programs.js";
import { runInside } from "../inside/try-from.js";
import type { Bench, Trial } from "./bench.js";
import { outputOf } from "./programs.js";

/** Whatever else was seen of these claims, they hold only while no process inside gives the daemon orders. */
export const daemonTrial: Trial = {
  shows: fallsWithDaemon,
  async run(bench) {
    const how = await tryDaemon(bench);
    return Object.fromEntries(fallsWithDaemon.map((claim) => [claim, how]));
  },
};

const ordersSchema = z.strictObject({
  /** Ports that took a connection. */
  open: z.array(z.int()),
  /** What the daemon printed of the order; null where it took none. */
  printed: z.string().nullable(),
});

const limitMs = 3_000;

/**
 * Gives the daemon orders: by the platform's own way in, where it must take them, then as a tool and as the agent.
 *
 * @returns what was seen.
 * @throws NotProven where a process of the sandbox reaches it.
 */
async function tryDaemon(bench: Bench): Promise<string> {
  const { sandbox, limited, account, signal } = bench;
  const { node } = account.config.bridge;
  const order = { ports: daemon.ports, limitMs };
  const control = ordersSchema.parse(await runInside(limited.machine, node, "orders", order, limitMs));
  if (control.printed === null) {
    throw new NotProven(
      `Daytona's daemon takes no orders on ${daemon.ports[0]} from the platform's own processes either, so nothing shows who may give it any`,
      "tell Ambit's maintainers which version of Daytona this is",
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
  return `Daytona's daemon took orders of root on ${control.open.join(", ")}, and answered neither a tool nor an agent`;
}
