import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { HiddenCredential } from "@ambit/core/plugin";
import { makeCertificate } from "@ambit/fakes/certificate";
import {
  type BrokerOptions,
  type CredentialBroker,
  openCredentialBroker,
} from "../../src/credentials/index.js";
import {
  allow,
  connectThrough,
  type Origin,
  openOrigin,
  openSession,
  type ProxySession,
} from "../proxy/session.js";

export const host = "git.example.test";
export const otherHost = "other.example.test";
export const value = `ghp_${"aaaabbbb".repeat(5)}`;

export interface World {
  readonly origin: Origin;
  readonly broker: CredentialBroker;
  readonly session: ProxySession;
  readonly placeholder: string;
  close(): Promise<void>;
}

/** A server for two names, a session whose credential is for the first, and its proxy. */
export async function openWorld(
  listener: Parameters<typeof openOrigin>[0] = {},
  more: Partial<HiddenCredential> = {},
  names: readonly string[] = [host, otherHost],
  refresh?: BrokerOptions["refresh"],
): Promise<World> {
  const certificate = makeCertificate(...names);
  const origin = await openOrigin({ tls: certificate, ...listener });
  const credential = {
    name: "TOKEN",
    value,
    as: "bearer",
    hosts: [`${host}:${origin.port}`],
    ...more,
  } as const;
  const broker = await openCredentialBroker([credential], { trusted: [certificate.cert], refresh });
  const session = await openSession(allow([host, otherHost]), { credentials: broker });
  return {
    origin,
    broker,
    session,
    placeholder: broker.placeholders.TOKEN ?? "",
    close: async () => {
      await session.close();
      await origin.close();
    },
  };
}

/** A TLS connection through the proxy that trusts the session's authority alone. */
export async function tlsThrough(
  { session, broker, origin }: World,
  options: { readonly name?: string; readonly tunnel?: string; readonly alpn?: string[] } = {},
): Promise<TLSSocket> {
  const { name = host, tunnel = host, alpn } = options;
  const { socket, status } = await connectThrough(session.path, `${tunnel}:${origin.port}`);
  if (status !== 200) throw new Error(`CONNECT answered ${status}`);
  const tls = connectTls({
    socket,
    servername: name,
    ca: broker.authority,
    ...(alpn === undefined ? {} : { ALPNProtocols: alpn }),
  });
  tls.on("error", () => {});
  await once(tls, "secureConnect");
  return tls;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** One request over a TLS connection of its own, or over `socket`. */
export async function ask(
  world: World,
  path: string,
  options: Pick<RequestOptions, "method" | "headers" | "signal"> & { body?: string; socket?: TLSSocket } = {},
): Promise<Answered> {
  const { body, socket, ...rest } = options;
  const tls = socket ?? (await tlsThrough(world));
  const outgoing = httpRequest({
    createConnection: () => tls,
    host,
    path,
    ...rest,
    headers: { host: `${host}:${world.origin.port}`, connection: "keep-alive", ...rest.headers },
  });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of incoming) text += String(chunk);
  if (socket === undefined) tls.destroy();
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: text };
}
