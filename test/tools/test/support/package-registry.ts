import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const packageName = "ambit-test-mcp-server";
const manifest = {
  name: packageName,
  version: "1.0.0",
  type: "module",
  bin: { [packageName]: "server.mjs" },
};

export interface PackageRegistry {
  readonly port: number;
  /** The name of its one package, an MCP server over stdio. */
  readonly packageName: string;
  /** A folder in which npm installed the package, like the prefix of `npm install --global`. */
  readonly prefix: string;
  requests(): number;
  /** How often the package was downloaded. */
  tarballs(): number;
  close(): Promise<void>;
}

/** An npm registry on loopback, with what `npx` needs. */
export async function startPackageRegistry(): Promise<PackageRegistry> {
  const program = readFileSync(fileURLToPath(new URL("stdio-server.mjs", import.meta.url)), "utf8");
  const packed = pack(`#!/usr/bin/env node\n${program}`);
  const tarball = readFileSync(packed.tarball);
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const path = `/${packageName}/-/${packageName}-1.0.0.tgz`;
  let requests = 0;
  let tarballs = 0;
  const server = createServer(({ url, headers }, response) => {
    requests += 1;
    if (url === path) {
      tarballs += 1;
      response.end(tarball);
    } else if (url === `/${packageName}`) {
      const dist = { tarball: `http://${headers.host}${path}`, integrity };
      const versions = { "1.0.0": { ...manifest, dist } };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name: packageName, "dist-tags": { latest: "1.0.0" }, versions }));
    } else response.writeHead(404, { "content-type": "application/json" }).end("{}");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the registry has no port");
  return {
    port: address.port,
    packageName,
    prefix: packed.prefix,
    requests: () => requests,
    tarballs: () => tarballs,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
      rmSync(packed.folder, { recursive: true });
    },
  };
}

function pack(program: string): {
  readonly folder: string;
  readonly tarball: string;
  readonly prefix: string;
} {
  const folder = mkdtempSync(join(tmpdir(), "ambit-package-"));
  const prefix = join(folder, "prefix");
  const npm = (...given: string[]) =>
    execFileSync("npm", [...given, "--silent", "--cache", join(folder, "cache")], { cwd: folder });
  try {
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    writeFileSync(join(folder, "server.mjs"), program);
    npm("pack");
    const tarball = join(folder, `${packageName}-1.0.0.tgz`);
    npm("install", "--global", "--offline", "--prefix", prefix, tarball);
    return { folder, tarball, prefix };
  } catch (error) {
    rmSync(folder, { recursive: true });
    throw error;
  }
}
