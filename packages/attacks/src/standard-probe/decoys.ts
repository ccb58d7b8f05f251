import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, lstat, mkdtemp, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { boundConnections } from "../decoys/network-decoys.js";
import { listeningPort } from "../probe/free-ports.js";

/** Targets on this host that a sandbox may try to reach. */
export interface ProbeDecoys {
  /** The text that its servers respond with, and that its file contains. */
  readonly secret: string;
  readonly host: "127.0.0.1";
  /** Where this host is reached: every address that the servers listen at. */
  readonly addresses: readonly string[];
  readonly listedPort: number;
  readonly otherPort: number;
  /** Of an abstract Unix socket, without its leading NUL. Undefined where this host has none. */
  readonly abstractName: string | undefined;
  /** A file that every user may read, in a folder that every user may write to. */
  readonly file: string;
  readonly folder: string;
  /** A folder for sandboxes to see, with a file `shown`: every user may write to both, and no sandbox may. */
  readonly shown: string;
  /** A variable of this process. */
  readonly variable: string;
  close(): Promise<void>;
}

const prefix = "ambit-probe-";
/** Milliseconds, longer than any probe takes. */
const maxProbeMs = 3_600_000;

/** Removes leftovers of probes whose process was killed, if they belong to this user. Files of other users stay. */
async function removeLeft(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter((one) => one.startsWith(prefix))) {
    const folder = join(tmpdir(), name);
    try {
      const { uid, mtimeMs } = await lstat(folder);
      if (uid !== process.getuid?.() || Date.now() - mtimeMs < maxProbeMs) continue;
      for (const file of ["secret", "shown"]) await rm(join(folder, file), { force: true });
      await rmdir(folder);
    } catch {
      // Another probe removed it, or it isn't empty.
    }
  }
}

/** @param reachedAt the only address to listen at. Default: every address of this host. */
export async function makeDecoys(reachedAt?: string): Promise<ProbeDecoys> {
  await removeLeft();
  const secret = `ambit-decoy-${randomUUID()}`;
  const folder = await mkdtemp(join(tmpdir(), prefix));
  await chmod(folder, 0o777);
  const file = join(folder, "secret");
  await writeFile(file, secret, { mode: 0o644 });
  const shown = await mkdtemp(join(tmpdir(), prefix));
  await writeFile(join(shown, "shown"), "shown");
  for (const path of [shown, join(shown, "shown")]) await chmod(path, 0o777);
  const servers = [serverSaying(secret), serverSaying(secret)];
  await Promise.all(servers.map((server) => once(server.listen(0, reachedAt), "listening")));
  const [listedPort = 0, otherPort = 0] = servers.map(listeningPort);
  const abstractName = process.platform === "linux" ? `ambit-decoy-${randomUUID()}` : undefined;
  if (abstractName !== undefined) {
    const local = serverSaying(secret);
    await once(local.listen(`\0${abstractName}`), "listening");
    servers.push(local);
  }
  const variable = `AMBIT_PROBE_${randomUUID().replaceAll("-", "")}`;
  process.env[variable] = secret;
  return {
    secret,
    host: "127.0.0.1",
    addresses:
      reachedAt === undefined
        ? Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
        : [reachedAt],
    listedPort,
    otherPort,
    abstractName,
    file,
    folder,
    shown,
    variable,
    async close() {
      delete process.env[variable];
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
      for (const path of [folder, shown]) await rm(path, { recursive: true, force: true });
    },
  };
}

function serverSaying(words: string): Server {
  const server = createServer((_request, response) => response.end(words));
  boundConnections(server);
  return server;
}
