import { runToEnd } from "@ambit/backend-kit";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";

export interface Target {
  readonly host: string;
  readonly port: number;
}

export const wordsOf = (targets: readonly Target[]) =>
  targets.map(({ host, port }) => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`)).join(", ");

/** Milliseconds for one connection: a policy drops packets rather than answering. */
const dialMs = 500;
/** Rounds without any answer after which the network counts as closed: on a busy node, one can be slow. */
const closedRounds = 2;

/** Dials all targets at once, again and again, until none answers. */
const program = `
const { targets, dialMs, closedRounds, settleMs } = JSON.parse(process.argv[1]);
const { connect } = require("node:net");
const dial = ({ host, port }) => new Promise((resolve) => {
  const socket = connect({ host, port });
  const end = (isOpen) => { clearTimeout(limit); socket.destroy(); resolve(isOpen); };
  const limit = setTimeout(end, dialMs, false);
  socket.once("connect", () => end(true)).once("error", (error) => end(error.code === "ECONNREFUSED"));
});
(async () => {
  const start = Date.now();
  for (let closed = 0, lastOpen = 0; ; ) {
    const answers = await Promise.all(targets.map(dial));
    const open = targets.filter((_, index) => answers[index]);
    if (open.length > 0) { closed = 0; lastOpen = Date.now() - start; } else closed += 1;
    if (closed < closedRounds && Date.now() - start < settleMs) { await new Promise((go) => setTimeout(go, 50)); continue; }
    console.log(JSON.stringify({ open, openMs: lastOpen }));
    process.exit();
  }
})();`;

const resultSchema = z.object({
  /** Those that answered in the last round. A refused connection is an answer too. */
  open: z.array(z.object({ host: z.string(), port: z.int() })),
  /** Milliseconds from the first round to the last one in which any answered. */
  openMs: z.int().nonnegative(),
});
export type Dialled = z.output<typeof resultSchema>;

/**
 * Dials from a process of the run until no target answers.
 *
 * @param settleMs after which what still answers is reported.
 */
export async function dialUntilClosed(
  sandbox: Sandbox,
  node: string,
  targets: readonly Target[],
  settleMs: number,
  signal: AbortSignal,
): Promise<Dialled> {
  const settings = JSON.stringify({ targets, dialMs, closedRounds, settleMs });
  const path = sandbox.image?.searchPath;
  const { stdout, stderr, exit } = await runToEnd(sandbox, {
    argv: [node, "-e", program, settings],
    env: path === undefined ? {} : { PATH: path },
    cwd: "/",
    role: "agent",
    signal,
  });
  if (exit.code !== 0) throw new SandboxFailed(`The pod's network couldn't be tried: ${stderr.slice(-300)}`);
  return resultSchema.parse(JSON.parse(stdout));
}

/** The targets that answer now, tried once. */
export async function answering(
  sandbox: Sandbox,
  node: string,
  targets: readonly Target[],
  signal: AbortSignal,
): Promise<readonly Target[]> {
  return (await dialUntilClosed(sandbox, node, targets, 0, signal)).open;
}
