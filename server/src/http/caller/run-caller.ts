import type { Socket } from "node:net";
import type { Runner } from "@ambit/runner";
import { HttpRefusal } from "../response/refusal.js";
import { isLoopback } from "./loopback.js";

const known = new WeakMap<Socket, Promise<boolean>>();

/**
 * Prevents processes of a run from starting or ending runs: without a boundary they reach this host's listeners.
 * Checked once per connection.
 *
 * @throws HttpRefusal 403
 */
export async function refuseCallersOfRuns(socket: Socket, runner: Runner): Promise<void> {
  const { localAddress = "", localPort = 0, remoteAddress = "", remotePort = 0 } = socket;
  const isElsewhere = remoteAddress !== localAddress && !isLoopback(remoteAddress.replace(/^::ffff:/, ""));
  // A connection that has ended has no addresses, and no known owner: its caller is refused like a run's.
  if (isElsewhere && remoteAddress !== "") return;
  const asked =
    known.get(socket) ?? runner.isCalledByRun({ localAddress, localPort, remoteAddress, remotePort });
  known.set(socket, asked);
  if (!(await asked)) return;
  const message =
    "A process of a run mustn't call the runner: call it from outside, or set AMBIT_TOKEN for callers that have a right to";
  throw new HttpRefusal(403, `${message}.`, "unauthorized");
}
