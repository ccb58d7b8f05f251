import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../probe/free-ports.js";
import type { CredentialHost } from "./credential-host.js";
import {
  type DatagramDecoy,
  openDatagramDecoy,
  openStreamDecoy,
  type StreamDecoy,
} from "./network-decoys.js";
import { freshSecret } from "./nonce.js";
import type { Endpoint, NamedEndpoint } from "./place.js";
import { type DecoyPlace, endpointByAnotherName, loopback } from "./place.js";

/** Everything on this machine that attacks try to reach. None of it is real. */
export interface Decoys {
  /** The secret that every decoy reveals, and that nothing inside can know otherwise. */
  readonly secret: string;
  /** Where they listen, and the names that lead there. */
  readonly place: DecoyPlace;
  readonly tcp: Endpoint;
  readonly udp: Endpoint;
  /** At this host's loopback, wherever the others are. */
  readonly onLoopback: Endpoint;
  /** Undefined where the place has no IPv6. */
  readonly tcp6: Endpoint | undefined;
  readonly udp6: Endpoint | undefined;
  /** Listens next to the address that allowlists name. Undefined if this host has no address 127.0.0.2. */
  readonly neighbour: Endpoint | undefined;
  /** The same at the listed server's port: the new address of a listed name that has changed. */
  readonly rebound: Endpoint | undefined;
  /** The server that allowlists name. It reveals `listedAnswer`, and never the secret. */
  readonly listed: Endpoint;
  readonly listed6: Endpoint | undefined;
  /** A decoy by a name that allowlists don't list. Undefined if this host has only one name for its loopback. */
  readonly unlisted: NamedEndpoint | undefined;
  /** Nothing listened on these ports of this host's loopback: for servers of the kit, inside or in a control. */
  readonly freePorts: readonly number[];
  /** The host of credentials, in suites that have it. Undefined: the backend's trust is unknown. */
  readonly keys: CredentialHost | undefined;
  readonly unixPath: string;
  /** Without its leading NUL. */
  readonly abstractName: string;
  /** Outside every sandbox, and open to every user. */
  readonly folder: DecoyFolder;
  /** Whether any request to a decoy, or to the listed server, contained this text. */
  saw(text: string): boolean;
  /** Everything that the listed server received. */
  listedReceived(): string;
  close(): Promise<void>;
}

export interface DecoyFolder {
  readonly path: string;
  /** Holds the secret; world-readable. */
  readonly secretFile: string;
  /** Holds `untouched`; world-writable. */
  readonly victimFile: string;
}

export const listedAnswer = "ambit-listed-server";
export const untouched = "untouched";
/** More than servers of the kit use at a time, since other programs may take some. */
const maxFreePorts = 5;

/**
 * Starts the decoys: servers, sockets, files in a temporary folder.
 *
 * @param place of the servers: that of the suite's `names`. Default: loopback.
 * @throws TypeError if the host of credentials listens elsewhere · Error if nothing can listen there.
 */
export async function startDecoys(keys?: CredentialHost, place: DecoyPlace = loopback): Promise<Decoys> {
  if (keys !== undefined && keys.address !== place.address) {
    const wrong = `it listens at ${keys.address}, and the suite's names lead to ${place.address}`;
    throw new TypeError(`credentialHost must be opened with names.place: ${wrong}`);
  }
  const secret = freshSecret();
  const folder = await makeFolder(secret);
  const abstractName = `ambit-decoy-${folder.path.slice(-6)}-${process.pid}`;
  const unixPath = join(folder.path, "decoy.sock");
  const streams = new Map<string, StreamDecoy>();
  const datagrams: DatagramDecoy[] = [];
  const stream = async (where: { host: string; port?: number } | { path: string }, answer = secret) => {
    const decoy = await openStreamDecoy(where, answer);
    if (decoy !== undefined) streams.set(decoy.name, decoy);
    return decoy;
  };
  const datagram = async (host: string) => {
    const decoy = await openDatagramDecoy(host, secret);
    if (decoy !== undefined) datagrams.push(decoy);
    return decoy;
  };
  const { address, address6, neighbour: nextTo, unlistedName } = place;
  const tcp = await stream({ host: address });
  const udp = await datagram(address);
  const onLoopback = place === loopback ? tcp : await stream({ host: loopback.address });
  const listed = await stream({ host: address }, listedAnswer);
  const tcp6 = address6 === undefined ? undefined : await stream({ host: address6 });
  const udp6 = address6 === undefined ? undefined : await datagram(address6);
  const listed6 = address6 === undefined ? undefined : await stream({ host: address6 }, listedAnswer);
  const neighbour = await stream({ host: nextTo });
  const rebound = listed && (await stream({ host: nextTo, port: listed.endpoint.port }));
  await stream({ path: unixPath });
  await chmod(unixPath, 0o777);
  await stream({ path: `\0${abstractName}` });
  const all = [...streams.values(), ...datagrams];
  const close = async () => {
    await Promise.all(all.map((decoy) => decoy.close()));
    await rm(folder.path, { recursive: true, force: true, maxRetries: 5 });
  };
  if (tcp === undefined || udp === undefined || listed === undefined || onLoopback === undefined) {
    await close();
    throw new Error(`the kit can't listen on ${address}: without decoys there is nothing to attack`);
  }
  // Not every host has the loopback's second address; one that an author names must be there.
  if (neighbour === undefined && place !== loopback) {
    await close();
    throw new Error(`the kit can't listen on ${nextTo}: give another address of this host as neighbour`);
  }
  return {
    secret,
    place,
    onLoopback: onLoopback.endpoint,
    tcp: tcp.endpoint,
    udp: udp.endpoint,
    tcp6: tcp6?.endpoint,
    udp6: udp6?.endpoint,
    neighbour: neighbour?.endpoint,
    rebound: rebound?.endpoint,
    listed: listed.endpoint,
    listed6: listed6?.endpoint,
    unlisted:
      unlistedName === undefined
        ? endpointByAnotherName(tcp.endpoint, tcp6?.endpoint)
        : { host: unlistedName, port: tcp.endpoint.port, address },
    freePorts: await freePorts(maxFreePorts),
    keys,
    unixPath,
    abstractName,
    folder,
    saw: (text) =>
      all.some((decoy) => decoy !== listed && decoy !== listed6 && decoy.received().includes(text)),
    listedReceived: () => listed.received() + (listed6?.received() ?? ""),
    close,
  };
}

async function makeFolder(secret: string): Promise<DecoyFolder> {
  const path = await mkdtemp(join(tmpdir(), "ambit-kit-decoys-"));
  const secretFile = join(path, "secret.txt");
  const victimFile = join(path, "victim.txt");
  await writeFile(secretFile, secret);
  await writeFile(victimFile, untouched);
  // The mode is set separately, since the process's umask would reduce it.
  await chmod(path, 0o777);
  await chmod(secretFile, 0o644);
  await chmod(victimFile, 0o666);
  return { path, secretFile, victimFile };
}
