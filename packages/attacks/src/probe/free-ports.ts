import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";

const lowestPort = 10_000;
/** Linux's default for the first port that the kernel gives to connections (`ip_local_port_range`). */
const defaultFirstEphemeralPort = 32_768;

/**
 * Different ports of this host's loopback that nothing listens on. They lie below the ports that the kernel gives to
 * connections and to port 0, so that only a program that names its port can take one before its user listens on it.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const endPort = Math.max(await firstEphemeralPort(), lowestPort + 1_000);
  const ports = new Set<number>();
  for (let attempts = 0; ports.size < count; attempts += 1) {
    if (attempts > count + 1_000)
      throw new Error(`no ${count} free ports between ${lowestPort} and ${endPort}`);
    const port = randomInt(lowestPort, endPort);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

async function firstEphemeralPort(): Promise<number> {
  const range = await readFile("/proc/sys/net/ipv4/ip_local_port_range", "utf8").catch(() => "");
  return Number.parseInt(range, 10) || defaultFirstEphemeralPort;
}

/** Asks on every address, since a server that listens on all of them needs the port there too. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port), "listening");
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** The port of a server that listens over TCP. @throws TypeError for any other */
export function listeningPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no TCP port");
  return address.port;
}
