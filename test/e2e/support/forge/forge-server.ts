import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Server, startServer } from "../ambit.js";
import { withForge } from "../configurations.js";
import { type Forge, startForge } from "./forge.js";

export interface ForgeServer {
  readonly forge: Forge;
  /** Trusts the forge, and every name leads to it. */
  readonly server: Server;
  close(): Promise<void>;
}

export interface ForgeServerOptions {
  /** Of the server's configuration. */
  readonly workspace?: object;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the server's own requests trust the forge too: those for archives and to its API. */
  readonly isTrustedByServer?: boolean;
}

/** A forge, and a server for it, for all tests of a file. @param rights of each token */
export async function startForgeServer(
  rights: Parameters<typeof startForge>[0],
  { workspace = {}, env = {}, isTrustedByServer = false }: ForgeServerOptions = {},
): Promise<ForgeServer> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-forge-"));
  const forge = await startForge(rights);
  const authority = join(folder, "authority.pem");
  writeFileSync(authority, forge.authority);
  const server = await startServer(
    {
      TEST_FORGE_AUTHORITY: authority,
      TEST_WORKSPACE: JSON.stringify({ preparedFolder: join(folder, "prepared"), ...workspace }),
      AMBIT_BLOBS_FOLDER: join(folder, "blobs"),
      ...(isTrustedByServer ? { NODE_EXTRA_CA_CERTS: authority } : {}),
      ...env,
    },
    withForge,
  );
  const close = async () => {
    server.process.kill("SIGTERM");
    await server.exit;
    await forge.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { forge, server, close };
}
