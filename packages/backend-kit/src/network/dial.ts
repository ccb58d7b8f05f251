import { runToEnd } from "@ambit/attacks/probe";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";

/** A TCP server that sandboxes may reach: a name or an address, and a port. */
export interface DialTarget {
  readonly host: string;
  readonly port: number;
}

type Probed = Pick<Sandbox, "spawn" | "image">;

export interface DialOptions {
  /** Node.js inside: a name on the image's `PATH`, or a path. */
  readonly node: string;
  readonly targets: readonly DialTarget[];
  /** Milliseconds for one connection, since a policy may drop packets rather than answer. Default 500. */
  readonly dialTimeoutMs?: number;
  readonly signal: AbortSignal;
}

export interface Dialled {
  /** Those that a connection was made to in the last round. */
  readonly open: readonly DialTarget[];
  /** Milliseconds from the first round to the last one in which any was open; 0 if none ever was. */
  readonly openMs: number;
}

/** Rounds in which nothing is open, after which the network counts as closed: on a busy machine, a connection can be slow. */
const closedRounds = 2;
/** Milliseconds between two rounds. */
const betweenMs = 50;

/** Dials all targets at once, again and again, until none is open. A refused connection isn't: firewalls answer so too. */
const program = `
const { targets, dialTimeoutMs, closedRounds, betweenMs, settleMs } = JSON.parse(process.argv[1]);
const { connect } = require("node:net");
const dial = ({ host, port }) => new Promise((resolve) => {
  const socket = connect({ host, port });
  const end = (isOpen) => { clearTimeout(limit); socket.destroy(); resolve(isOpen); };
  const limit = setTimeout(end, dialTimeoutMs, false);
  socket.once("connect", () => end(true)).once("error", () => end(false));
});
(async () => {
  const start = Date.now();
  for (let closed = 0, openMs = 0; ; ) {
    const connected = await Promise.all(targets.map(dial));
    const open = targets.filter((_, index) => connected[index]);
    const now = Date.now() - start;
    if (open.length > 0) { closed = 0; openMs = now; } else closed += 1;
    if (closed < closedRounds && now < settleMs) { await new Promise((go) => setTimeout(go, betweenMs)); continue; }
    console.log(JSON.stringify({ open, openMs }));
    process.exit();
  }
})();`;

const dialledSchema = z.object({
  open: z.array(z.object({ host: z.string(), port: z.int() })),
  openMs: z.number().nonnegative(),
});

/**
 * For a sandbox whose network something else closes, such as a policy of a cluster, which may come late, or never: dials from
 * a process of the run until no target is open. Call it before the sandbox is handed over, with targets that a sandbox
 * without limits reaches (`reachedTargets`): others show nothing.
 *
 * @param settleMs milliseconds after which what is still open is reported.
 * @throws SandboxFailed if the program doesn't run.
 */
export async function dialUntilClosed(
  sandbox: Probed,
  { node, targets, dialTimeoutMs = 500, signal }: DialOptions,
  settleMs: number,
): Promise<Dialled> {
  const settings = JSON.stringify({ targets, dialTimeoutMs, closedRounds, betweenMs, settleMs });
  const path = sandbox.image?.searchPath ?? process.env.PATH;
  const { stdout, stderr, exit } = await runToEnd(sandbox, {
    argv: [node, "-e", program, settings],
    env: path === undefined ? {} : { PATH: path },
    cwd: "/",
    role: "agent",
    signal,
  });
  if (exit.code !== 0)
    throw new SandboxFailed(`The sandbox's network couldn't be tried: ${stderr.trim().slice(-300)}`);
  return dialledSchema.parse(JSON.parse(stdout));
}

/** The control: the targets that a sandbox without limits reaches now. @throws as `dialUntilClosed` */
export async function reachedTargets(sandbox: Probed, options: DialOptions): Promise<readonly DialTarget[]> {
  return (await dialUntilClosed(sandbox, options, 0)).open;
}
