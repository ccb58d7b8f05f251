import type { Socket } from "node:net";
import type { AdmittedDestination } from "../decide.js";
import { readTarget, type TargetReading } from "../target.js";
import type { Tunnel } from "./clients.js";
import type { CredentialProxy } from "./credentials/credential-proxy.js";
import { escapeForReport, type Gate, UpstreamFailure } from "./gate.js";
import { isOwnAddress } from "./http/own-response.js";
import { SocketReader } from "./socket-reader.js";
import { carryTunnel } from "./tunnel/tunnel.js";

/** Replies of RFC 1928 section 6. Only `notAllowed` comes from the boundary. */
const reply = {
  succeeded: 0x00,
  failed: 0x01,
  notAllowed: 0x02,
  unreachable: 0x04,
  timedOut: 0x06,
  noSuchCommand: 0x07,
  noSuchAddressType: 0x08,
} as const;

const succeeded = Buffer.from([5, reply.succeeded, 0, 1, 0, 0, 0, 0, 0, 0]);

const NO_AUTHENTICATION = 0x00;
const NO_ACCEPTABLE_METHOD = 0xff;
const CONNECT = 0x01;
const [IPV4, NAME, IPV6] = [0x01, 0x03, 0x04];

type Request = { readonly reading: TargetReading; readonly raw: string } | { readonly reply: number };

/**
 * SOCKS5 with CONNECT only (no UDP, no BIND). The socket belongs to the session, so there is no password.
 * Names arrive unresolved ("socks5h") and are resolved here.
 *
 * @param credentials serves tunnels to the hosts of the session's credentials.
 * @param ownPort where clients reach the session itself: a connection to it is HTTP, and goes nowhere else.
 */
export async function serveSocks5(
  gate: Gate,
  client: Socket,
  head: Buffer,
  ownPort: number | undefined,
  serveHttp: (client: Socket, head: Buffer, tunnel: Tunnel) => void,
  credentials?: CredentialProxy,
): Promise<void> {
  const reader = new SocketReader(client, head);
  const deadline = setTimeout(() => client.destroy(), gate.limits.handshakeMs);
  let request: Request | undefined;
  try {
    request = (await greet(reader, client)) ? await readRequest(reader) : undefined;
  } finally {
    clearTimeout(deadline);
  }
  const rest = reader.release();
  const refuse = (code: number) => {
    client.end(Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]), () => client.destroy());
  };
  if (request === undefined) return void client.end(() => client.destroy());
  if ("reply" in request) return refuse(request.reply);
  const { reading, raw } = request;
  if (!reading.ok) {
    gate.report({ host: escapeForReport(raw), port: 0 }, "socks5", { allowed: false, reason: reading.why });
    return refuse(reply.notAllowed);
  }
  const { target } = reading;
  if (isOwnAddress(target, ownPort)) {
    client.write(succeeded);
    return serveHttp(client, rest, "own");
  }
  const admission = await gate.admitOrReport(target, "socks5");
  if (admission instanceof UpstreamFailure) return refuse(replyFor(admission));
  if (!admission.decision.allowed) return refuse(reply.notAllowed);
  const tunnel: AdmittedDestination = { target, protocol: "socks5", ...admission };
  if (credentials?.serves(target) === true) {
    client.write(succeeded);
    return credentials.accept(client, rest, tunnel, (socket, held) => serveHttp(socket, held, tunnel));
  }
  const upstream = await gate.dialOrReport(tunnel, client);
  if (upstream instanceof UpstreamFailure) return refuse(replyFor(upstream));
  client.write(succeeded);
  await carryTunnel(gate, tunnel, client, rest, upstream, (socket, held) => serveHttp(socket, held, tunnel));
}

/** SOCKS4 and 4a are refused with their own "rejected" reply: 4 resolves names before it asks, 4a is what 5 replaced. */
export async function refuseSocks4(gate: Gate, client: Socket, head: Buffer): Promise<void> {
  const reader = new SocketReader(client, head);
  const deadline = setTimeout(() => client.destroy(), gate.limits.handshakeMs);
  const request = await reader.take(8);
  clearTimeout(deadline);
  reader.release();
  if (request !== undefined) {
    const target = { host: request.subarray(4, 8).join("."), port: request.readUInt16BE(2) };
    gate.report(target, "socks4", {
      allowed: false,
      reason: "SOCKS4 is not supported: use SOCKS5 with names (socks5h)",
    });
  }
  client.end(Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0]), () => client.destroy());
}

async function greet(reader: SocketReader, client: Socket): Promise<boolean> {
  const head = await reader.take(2);
  const methods = head === undefined ? undefined : await reader.take(head.readUInt8(1));
  if (methods === undefined) return false;
  const method = methods.includes(NO_AUTHENTICATION) ? NO_AUTHENTICATION : NO_ACCEPTABLE_METHOD;
  client.write(Buffer.from([5, method]));
  return method === NO_AUTHENTICATION;
}

async function readRequest(reader: SocketReader): Promise<Request | undefined> {
  const head = await reader.take(4);
  if (head === undefined || head[0] !== 5) return undefined;
  const type = head[3];
  const length =
    type === IPV4 ? 4 : type === IPV6 ? 16 : type === NAME ? (await reader.take(1))?.[0] : undefined;
  if (length === undefined) return { reply: reply.noSuchAddressType };
  const host = await reader.take(length);
  const port = await reader.take(2);
  if (host === undefined || port === undefined) return undefined;
  if (head[1] !== CONNECT) return { reply: reply.noSuchCommand };
  const raw =
    type === NAME ? host.toString("utf8") : type === IPV4 ? host.join(".") : `[${groupsOf(host).join(":")}]`;
  return { reading: readTarget(raw, port.readUInt16BE(0)), raw };
}

/** An IPv6 address's eight groups, in hexadecimal. */
function groupsOf(address: Buffer): string[] {
  return Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16));
}

function replyFor(failure: UpstreamFailure): number {
  if (failure.kind === "timed-out") return reply.timedOut;
  return failure.kind === "unresolved" ? reply.unreachable : reply.failed;
}
