import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "@ambit/egress/credentials";
import { serveGit } from "@ambit/fakes/git-http-backend";
import { makePackages, makeRepository, packument } from "../programs/listed-host.js";

export const host = "private.test";

export interface PrivateHost {
  readonly port: number;
  /** In PEM: the authority that the proxy must trust. */
  readonly authority: string;
  /** `Authorization` of every request. */
  readonly authorizations: readonly string[];
  close(): Promise<void>;
}

function makeCrate(folder: string): Buffer {
  mkdirSync(join(folder, "part-1.0.0", "src"), { recursive: true });
  writeFileSync(join(folder, "part-1.0.0", "Cargo.toml"), '[package]\nname = "part"\nversion = "1.0.0"\n');
  writeFileSync(join(folder, "part-1.0.0", "src", "lib.rs"), "");
  return execFileSync("tar", ["-cz", "part-1.0.0"], { cwd: folder });
}

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");

/**
 * A TLS server that requires the values: git repositories (`/repository`, the same below `/shared/`), a pip index, an
 * npm registry, one of cargo, and `/api`.
 */
export async function startPrivateHost(password: string, token: string): Promise<PrivateHost> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-private-host-"));
  await chmod(folder, 0o755);
  makeRepository(folder);
  symlinkSync(".", join(folder, "shared"));
  const { wheel, tarball } = makePackages(folder);
  const crate = makeCrate(folder);
  const basic = `Basic ${Buffer.from(`x-access-token:${password}`).toString("base64")}`;
  const authority = await makeAuthority();
  const SNICallback: NonNullable<Parameters<typeof createServer>[0]["SNICallback"]> = (name, done) => {
    authority.contextFor(name).then((context) => done(null, context), done);
  };
  const authorizations: string[] = [];
  const server = createServer({ SNICallback }, (request, response) => {
    const sent = request.headers.authorization ?? "";
    const path = new URL(request.url ?? "/", "https://a").pathname;
    authorizations.push(sent);
    const needed = /^\/(api|npm|part\.tgz|cargo)/.test(path) ? `Bearer ${token}` : basic;
    if (sent !== needed) {
      request.resume();
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="private"' }).end();
    }
    const answers: Record<string, () => string | Buffer | undefined> = {
      "/api": () => `served to ${sent}\n`,
      "/index/part/": () => '<a href="/part-1-py3-none-any.whl">part-1-py3-none-any.whl</a>',
      "/part-1-py3-none-any.whl": () => wheel,
      "/npm/part": () => JSON.stringify(packument(`https://${request.headers.host}/part.tgz`, tarball)),
      // As npm asks for a package with a scope.
      "/npm/@acme%2fpart": () => {
        const place = `https://${request.headers.host}/npm/@acme/part/-/part-1.0.0.tgz`;
        return JSON.stringify({ ...packument(place, tarball), name: "@acme/part" });
      },
      "/npm/@acme/part/-/part-1.0.0.tgz": () => tarball,
      "/part.tgz": () => tarball,
      "/cargo/config.json": () =>
        JSON.stringify({ dl: `https://${request.headers.host}/cargo/crates`, "auth-required": true }),
      "/cargo/pa/rt/part": () =>
        JSON.stringify({
          name: "part",
          vers: "1.0.0",
          deps: [],
          cksum: sha256(crate),
          features: {},
          yanked: false,
        }),
      "/cargo/crates/part/1.0.0/download": () => crate,
    };
    const answer = answers[path];
    if (answer === undefined) return serveGit(folder, request, response);
    response.setHeader("content-type", path.startsWith("/index/") ? "text/html" : "application/octet-stream");
    response.end(answer());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    authority: authority.certificate,
    authorizations,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
