import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "@ambit/egress/credentials";

export const registryHost = "registry.test";

export interface Registry {
  readonly port: number;
  /** In PEM: the authority that proxies must trust. */
  readonly authority: string;
  /** The `Authorization` of each request. */
  readonly served: readonly { readonly url: string; readonly authorization: string }[];
  close(): Promise<void>;
}

/**
 * An npm registry over TLS on loopback, for those who send the token. It has one package, `greeting`, whose program prints
 * a greeting.
 */
export async function startRegistry(token: string): Promise<Registry> {
  const tarball = packed();
  const served: { url: string; authorization: string }[] = [];
  const authority = await makeAuthority();
  const server = createServer(
    {
      SNICallback: (name, done) => {
        authority.contextFor(name).then((context) => done(null, context), done);
      },
    },
    ({ url = "", headers: { authorization = "" } }, response) => {
      served.push({ url, authorization });
      if (authorization !== `Bearer ${token}`) return void response.writeHead(401).end();
      if (url === "/greeting/-/greeting-1.0.0.tgz") return void response.end(tarball);
      if (url !== "/greeting") return void response.writeHead(404).end();
      const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
      const dist = {
        tarball: `https://${registryHost}:${port}/greeting/-/greeting-1.0.0.tgz`,
        integrity,
      };
      const version = { name: "greeting", version: "1.0.0", bin: { greet: "greet.js" }, dist };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          name: "greeting",
          "dist-tags": { latest: "1.0.0" },
          versions: { "1.0.0": version },
        }),
      );
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    authority: authority.certificate,
    served,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function packed(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "ambit-registry-"));
  try {
    const about = { name: "greeting", version: "1.0.0", bin: { greet: "greet.js" } };
    writeFileSync(join(folder, "package.json"), JSON.stringify(about));
    writeFileSync(join(folder, "greet.js"), '#!/usr/bin/env node\nconsole.log("hello from the package");\n');
    execFileSync("npm", ["pack", "--silent", "--ignore-scripts"], { cwd: folder, stdio: "ignore" });
    return readFileSync(join(folder, "greeting-1.0.0.tgz"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
