import { runToEnd } from "@ambit/attacks/probe";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";

/** A server that sandboxes may reach: a name or an address, and a port. */
export interface DialTarget {
  readonly host: string;
  readonly port: number;
  /** Default `tcp`. With `udp` it gets a DNS query, and must answer with a datagram. */
  readonly protocol?: "tcp" | "udp" | undefined;
}

type Probed = Pick<Sandbox, "spawn" | "image">;

export interface DialOptions {
  /** Node.js inside: a name on the image's `PATH`, or a path. */
  readonly node: string;
  readonly targets: readonly DialTarget[];
  /** Milliseconds for one answer, since a policy may drop packets rather than answer. Default 500. */
  readonly dialTimeoutMs?: number;
  readonly signal: AbortSignal;
}

export interface Dialled {
  /** Those that answered in the last round, by their addresses. */
  readonly open: readonly DialTarget[];
  /** Milliseconds from the first round to the last one in which any was open; 0 if none ever was. */
  readonly openMs: number;
}

/** Rounds in which nothing is open, after which the network counts as closed: on a busy machine, a connection can be slow. */
const closedRounds = 2;
/** Milliseconds between two rounds. */
const betweenMs = 50;

/** Milliseconds for a name: a resolver may be away. */
const lookupMs = 3_000;

/**
 * Dials all targets at once, again and again, until none is open. A refused connection isn't: firewalls answer so too. The
 * datagram asks for a server's version, which every name server answers by itself, whatever it knows.
 */
const program = `
const { targets, dialTimeoutMs, closedRounds, betweenMs, settleMs, lookupMs } = JSON.parse(process.argv[1]);
const net = require("node:net");
const query = Buffer.concat([Buffer.from("a17b01000001000000000000", "hex"), Buffer.from("\\x07version\\x04bind\\0\\0\\x10\\0\\x03", "latin1")]);
const within = (ms, begin) => new Promise((resolve) => {
  let hasEnded = false;
  const end = (isOpen) => {
    if (hasEnded) return;
    hasEnded = true;
    clearTimeout(limit);
    stop();
    resolve(isOpen);
  };
  const limit = setTimeout(() => end(false), ms);
  const stop = begin(end);
});
const overTcp = ({ host, port }) => within(dialTimeoutMs, (end) => {
  const socket = net.connect({ host, port });
  socket.once("connect", () => end(true)).on("error", () => end(false));
  return () => socket.destroy();
});
const overUdp = ({ host, port }) => within(dialTimeoutMs, (end) => {
  const socket = require("node:dgram").createSocket(net.isIPv6(host) ? "udp6" : "udp4");
  const failed = (error) => { if (error) end(false); };
  socket.once("message", () => end(true)).on("error", failed);
  socket.connect(port, host, (error) => { if (error) end(false); else try { socket.send(query, failed); } catch { end(false); } });
  return () => socket.close();
});
const dial = (target) => (target.protocol === "udp" ? overUdp : overTcp)(target);
const addressesOf = async (target) => {
  if (net.isIP(target.host) !== 0) return [target];
  const late = new Promise((resolve) => setTimeout(resolve, lookupMs, []));
  const found = require("node:dns").promises.lookup(target.host, { all: true }).catch(() => []);
  return (await Promise.race([found, late])).map(({ address }) => ({ ...target, host: address }));
};
(async () => {
  const all = (await Promise.all(targets.map(addressesOf))).flat();
  const start = Date.now();
  for (let closed = 0, openMs = 0; ; ) {
    const answered = await Promise.all(all.map(dial));
    const open = all.filter((_, index) => answered[index]);
    const now = Date.now() - start;
    if (open.length > 0) { closed = 0; openMs = now; } else closed += 1;
    if (closed < closedRounds && now < settleMs) { await new Promise((go) => setTimeout(go, betweenMs)); continue; }
    console.log(JSON.stringify({ open, openMs }));
    process.exit();
  }
})();`;

const dialledSchema = z.object({
  open: z.array(z.object({ host: z.string(), port: z.int(), protocol: z.enum(["tcp", "udp"]).optional() })),
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
  const settings = JSON.stringify({ targets, dialTimeoutMs, closedRounds, betweenMs, settleMs, lookupMs });
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

/**
 * The control: the targets that a sandbox without limits reaches now, by their addresses, since one whose resolver is closed
 * would find no name. @throws as `dialUntilClosed`
 */
export async function reachedTargets(sandbox: Probed, options: DialOptions): Promise<readonly DialTarget[]> {
  return (await dialUntilClosed(sandbox, options, 0)).open;
}
