import { createServer, type Socket } from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { lineOf, MessageReader, maxMessageBytes, type RelaySettings, relayTls } from "./messages.js";

/** Milliseconds for the gate to answer a new connection. */
const connectMs = 10_000;
/** Milliseconds between two attempts to reach a gate to which the network doesn't lead yet. */
const retryMs = 25;
/** Connections at once: no fewer than the proxy serves. */
const maxConnections = 512;

/**
 * Carries connections from a Unix socket to the session's gate. It decides nothing, and knows of the session only the secret
 * that opens the gate.
 *
 * @returns the milliseconds after which the gate was reached. @throws Error where it isn't
 */
async function startRelay(settings: RelaySettings): Promise<number> {
  const { path, settleMs, user } = settings;
  const begun = performance.now();
  for (;;) {
    const failure = await tryGate(settings);
    if (failure === undefined) break;
    if (performance.now() - begun > settleMs) throw failure;
    await after(retryMs);
  }
  const afterMs = performance.now() - begun;
  const server = createServer({ allowHalfOpen: true }, (client) => carry(client, settings));
  server.maxConnections = maxConnections;
  process.umask(0o077);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  // One that couldn't be accepted ends nothing else.
  server.on("error", () => undefined);
  becomeUser(user);
  return afterMs;
}

/** It no longer needs to be root. */
function becomeUser(user: number): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(user);
  process.setuid?.(user);
}

const open = ({ gate, secret }: RelaySettings) => {
  const tls = connectTls({ ...relayTls(Buffer.from(secret, "hex")), ...gate }).setNoDelay(true);
  const timer = setTimeout(() => tls.destroy(new Error("the gate didn't answer in time")), connectMs);
  tls.once("secureConnect", () => clearTimeout(timer));
  tls.once("close", () => clearTimeout(timer));
  return tls;
};

/** Why the gate isn't reached, or isn't the gate. */
function tryGate(settings: RelaySettings): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const tls = open(settings);
    const end = (failure: Error | undefined) => {
      resolve(failure);
      tls.destroy();
    };
    tls.once("secureConnect", () => end(undefined));
    tls.on("error", end);
    tls.once("close", () => end(new Error("the gate closed the connection")));
  });
}

function carry(client: Socket, settings: RelaySettings): void {
  const gate = open(settings);
  for (const [one, another] of [
    [client, gate],
    [gate, client],
  ] as const) {
    one.on("error", () => another.destroy());
    // What it sent before its end still arrives.
    one.once("close", () => another.destroySoon());
    one.pipe(another);
  }
}

const say = (message: object) => process.stdout.write(lineOf(message));
let silence: NodeJS.Timeout | undefined;
const reader = new MessageReader(maxMessageBytes, (message) => {
  // The type is the runner's, which this program came with.
  if (silence === undefined) void begin(message as RelaySettings);
  else say({ pong: true });
});

async function begin(settings: RelaySettings): Promise<void> {
  silence = setTimeout(() => process.exit(), settings.silenceMs);
  try {
    const afterMs = await startRelay(settings);
    say({ ready: { afterMs: Math.round(afterMs) } });
  } catch (error) {
    say({ failed: String(error) });
    setTimeout(() => process.exit(1), 100);
  }
}

process.stdin.on("data", (bytes: Buffer) => {
  silence?.refresh();
  reader.push(bytes);
});
// The runner, or the way to it, is gone.
for (const event of ["end", "close", "error"]) process.stdin.once(event, () => process.exit());
