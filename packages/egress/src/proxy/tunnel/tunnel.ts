import type { Socket } from "node:net";
import { codeOf } from "@ambit/core/plugin";
import type { AdmittedDestination } from "../../decide.js";
import type { EgressLimits } from "../clients.js";
import type { Gate } from "../gate.js";
import { SocketReader } from "../socket-reader.js";

/** A fatal `access_denied` alert (RFC 8446 section 6): the client reports a refusal and not a broken connection. */
export const TLS_ACCESS_DENIED = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31]);

/**
 * Carries an opened tunnel: buffers the client's first flight until it is checked, while the server may already send
 * (SMTP and SSH servers send first). Reports the tunnel's one decision.
 *
 * @param serveHttp takes over a client that sends cleartext HTTP; the opened connection is then closed.
 */
export async function carryTunnel(
  gate: Gate,
  tunnel: AdmittedDestination,
  client: Socket,
  head: Buffer,
  upstream: Socket,
  serveHttp: (client: Socket, head: Buffer) => void,
): Promise<void> {
  const { target, protocol } = tunnel;
  const address = upstream.remoteAddress;
  const clientSpeaksFirst = target.port === 443 || target.port === 80;
  if (target.kind === "address") {
    gate.reportOpened(tunnel, upstream);
    reportSilentEnd(gate, tunnel, client, upstream);
    return join(client, head, upstream, gate.limits);
  }
  if (!clientSpeaksFirst) upstream.pipe(client);
  const abandon = () => client.destroy();
  upstream.once("close", abandon);
  client.setTimeout(gate.limits.idleMs, abandon);
  const reader = new SocketReader(client, head);
  let deadline: NodeJS.Timeout | undefined;
  const startDeadline = () => {
    deadline ??= setTimeout(abandon, gate.limits.handshakeMs);
  };
  if (clientSpeaksFirst || head.length > 0) startDeadline();
  try {
    for (let needed = 1; ; ) {
      const bytes = await reader.peek(needed);
      const flight = gate.checks.firstFlight(target, bytes, bytes.length < needed);
      if (flight.verdict === "wait") {
        needed = flight.needed;
        if (bytes.length > 0) startDeadline();
        continue;
      }
      const rest = reader.release();
      upstream.off("close", abandon);
      upstream.unpipe(client);
      if (flight.verdict === "refuse") {
        upstream.destroy();
        gate.report(target, protocol, { allowed: false, reason: flight.reason }, address);
        if (flight.tls) client.write(TLS_ACCESS_DENIED);
        client.end(() => client.destroy());
        return;
      }
      gate.reportOpened(tunnel, upstream);
      if (flight.verdict === "http" && upstream.bytesRead === 0) {
        upstream.destroy();
        return serveHttp(client, rest);
      }
      reportSilentEnd(gate, tunnel, client, upstream);
      return join(client, rest, upstream, gate.limits);
    }
  } finally {
    clearTimeout(deadline);
  }
}

/** A server that ends a connection before its first byte, while the client waits: reset, or no server of this protocol. */
function reportSilentEnd(gate: Gate, tunnel: AdmittedDestination, client: Socket, upstream: Socket): void {
  const report = () => {
    if (upstream.bytesRead > 0 || client.readableEnded || (client.destroyed && !upstream.errored)) return;
    const code = codeOf(upstream.errored);
    gate.reportFailure(
      tunnel,
      `the server closed the connection without an answer${code === undefined ? "" : ` (${code})`}`,
    );
  };
  if (upstream.destroyed) report();
  else upstream.once("close", report);
}

/** Copies in both directions with backpressure and half-close until both sides have ended, or one of them fails. */
export function join(client: Socket, head: Buffer, upstream: Socket, limits: EgressLimits): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    // A side that has ended but is still flushing must not truncate the other side's last bytes.
    from.once("close", (hadError) => {
      if (hadError || !to.writableEnded) to.destroy();
    });
    from.setTimeout(limits.idleMs);
    from.on("timeout", () => {
      from.destroy();
      to.destroy();
    });
    from.once("end", () => {
      client.setTimeout(limits.halfClosedIdleMs);
      upstream.setTimeout(limits.halfClosedIdleMs);
    });
  }
  if (client.destroyed || upstream.destroyed) {
    client.destroy();
    upstream.destroy();
    return;
  }
  if (head.length > 0) upstream.write(head);
  if (client.readableEnded) upstream.end();
  else client.pipe(upstream);
  if (upstream.readableEnded) client.end();
  else upstream.pipe(client);
}
