import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "../support/specs.js";

type Answer = string | Buffer | undefined;

/** A server on this host's loopback with a file, a git repository, a pip index and an npm registry. */
export async function startListedHost(): Promise<number> {
  const folder = await temporaryFolder();
  makeRepository(folder);
  const { wheel, tarball } = makePackages(folder);
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://a").pathname;
    const answers: Record<string, () => Answer> = {
      "/file": () => "served\n",
      "/index/part/": () => '<a href="/part-1-py3-none-any.whl">part-1-py3-none-any.whl</a>',
      "/part-1-py3-none-any.whl": () => wheel,
      "/npm/part": () => JSON.stringify(packument(`http://${request.headers.host}/part.tgz`, tarball)),
      "/maven/a/parent/1/parent-1.pom": () =>
        "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging></project>",
      "/part.tgz": () => tarball,
    };
    const answer = answers[path]?.() ?? fileIn(folder, path);
    response.setHeader("content-type", path.startsWith("/index/") ? "text/html" : "application/octet-stream");
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  // An SSH client speaks first; it only learns the name of this server's software.
  server.on("clientError", (_error, client) => client.end("SSH-2.0-listed\r\n"));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

export function makeRepository(folder: string): void {
  if (!existsSync("/usr/bin/git")) return;
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: folder });
  git("init", "-q", "work");
  git("-C", "work", "commit", "-q", "--allow-empty", "-m", "first");
  git("clone", "-q", "--bare", "work", "repository");
  git("-C", "repository", "update-server-info");
}

function fileIn(folder: string, path: string): Buffer | undefined {
  const place = join(folder, path);
  return existsSync(place) && statSync(place).isFile() ? readFileSync(place) : undefined;
}

export function packument(tarball: string, content: Buffer): object {
  const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  const version = { name: "part", version: "1.0.0", dist: { tarball, integrity } };
  return { name: "part", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
}

/** In the formats of npm and pip; undefined if the host has no Python, and so no pip. */
export function makePackages(folder: string): {
  readonly wheel: Buffer | undefined;
  readonly tarball: Buffer;
} {
  mkdirSync(join(folder, "package"));
  writeFileSync(join(folder, "package", "package.json"), '{"name":"part","version":"1.0.0"}');
  const tarball = execFileSync("tar", ["-cz", "package"], { cwd: folder });
  if (!existsSync("/usr/bin/python3")) return { wheel: undefined, tarball };
  execFileSync("/usr/bin/python3", ["-c", makeWheel], { cwd: folder });
  return { wheel: readFileSync(join(folder, "part-1-py3-none-any.whl")), tarball };
}

const makeWheel = `
import zipfile
with zipfile.ZipFile("part-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("part-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: part\\nVersion: 1\\n")
    wheel.writestr("part-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("part-1.dist-info/RECORD", "")
`;
