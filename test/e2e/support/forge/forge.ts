import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { makeAuthority } from "@ambit/egress/credentials";
import { serveGit } from "@ambit/fakes/git-http-backend";
import { contentAt, type LfsForm, lfsForms } from "./lfs-forms.js";
import { type Pull, pullRequests } from "./pull-requests.js";

export const forgeHost = "forge.test";

/** What a token may do. */
interface Rights {
  readonly fetch?: RegExp;
  readonly push?: RegExp;
}

/** A request that reached it. */
export interface Served {
  readonly host: string;
  readonly method: string;
  readonly url: string;
  readonly authorization: string;
  readonly body?: string;
}

export interface Forge {
  readonly port: number;
  /** In PEM: the authority that proxies must trust. */
  readonly authority: string;
  readonly served: readonly Served[];
  /** `https://forge.test:port/path`. */
  url(path: string): string;
  /** Makes a repository with one commit of these files; a path that ends in `*` is executable. @returns the commit */
  repository(
    path: string,
    files: Readonly<Record<string, string>>,
    prepare?: (git: (...args: readonly string[]) => string, folder: string) => void,
  ): string;
  /** Runs git in the bare repository. */
  git(path: string, ...args: readonly string[]): string;
  /** Clones the repository as a user would, without the server. */
  clone(path: string, into: string): void;
  /** How it answers for a repository's contents in git LFS. Default: `signed`. */
  answerLfs(path: string, form: LfsForm): void;
  /** Adds a content to git LFS. @returns the text of its pointer */
  lfs(content: string): string;
  /** A content that git LFS has. */
  lfsContent(oid: string): string | undefined;
  /** What was opened. */
  readonly pulls: readonly Pull[];
  close(): Promise<void>;
}

const identity = ["-c", "user.name=Forge", "-c", "user.email=forge@example.com"];
const plainGit = {
  PATH: process.env.PATH,
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_COMMITTER_DATE: "2026-01-01T00:00:00Z",
  GIT_AUTHOR_DATE: "2026-01-01T00:00:00Z",
};

/**
 * A forge over TLS on loopback: real git's HTTP backend, git LFS, and pull requests in the shape of each host.
 * Each token has its own rights.
 */
export async function startForge(tokens: Readonly<Record<string, Rights>>): Promise<Forge> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-forge-"));
  const contents = new Map<string, Buffer>();
  const lfsFormOf = new Map<string, LfsForm>();
  /** Values of `Authorization` that it made for contents. */
  const minted = new Set<string>();
  const served: Served[] = [];
  const authority = await makeAuthority();
  const server = createServer(
    {
      SNICallback: (name, done) => {
        authority.contextFor(name).then((context) => done(null, context), done);
      },
    },
    (request, response) => void answer(request, response),
  );

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers, url: sent = "" } = request;
    const host = (headers.host ?? "").replace(/:\d+$/, "");
    const { pathname, search } = new URL(sent, "https://forge");
    const { authorization = "" } = headers;
    const isGit = /\/(info\/refs|git-(upload|receive)-pack)$/.test(pathname);
    const body = isGit ? undefined : (await buffer(request)).toString("latin1");
    served.push({ host, method, url: sent, authorization, ...(body === undefined ? {} : { body }) });
    const end = (status: number, answered = "", more: Record<string, string> = {}) => {
      request.resume();
      response.writeHead(status, more).end(answered);
    };
    // Servers of contents refuse a request with two kinds of authentication.
    const sentTwice = request.rawHeaders.filter((name) => /^authorization$/i.test(name)).length > 1;
    if (sentTwice) return end(400, "Only one auth mechanism allowed.\n");
    const repository = /^(\/[^?]*?)(?:\.git)?\/(?:info\/|git-|gitlab-lfs\/)/.exec(pathname)?.[1] ?? pathname;
    const isRead = tokens[tokenOf(authorization) ?? ""]?.fetch?.test(repository) === true;
    const content = contentAt(pathname);
    if (content !== undefined) {
      const { oid, isVerified } = content;
      const isOpen = pathname.startsWith("/contents/") ? authorization === "" : minted.has(authorization);
      if (!isOpen && !isRead) return end(403);
      if (isVerified) return end(contents.has(oid) ? 200 : 404);
      if (method === "PUT") {
        const isWhole =
          createHash("sha256")
            .update(body ?? "", "latin1")
            .digest("hex") === oid;
        if (isWhole) contents.set(oid, Buffer.from(body ?? "", "latin1"));
        return end(isWhole ? 200 : 422);
      }
      const found = contents.get(oid);
      return found === undefined ? end(404) : void response.end(found);
    }
    const fromApi = isGit ? undefined : api.answer({ method, url: sent, headers, body: body ?? "" });
    if (fromApi !== undefined)
      return end(fromApi.status, JSON.stringify(fromApi.content), { "content-type": "application/json" });
    if (!repository.startsWith("/public/")) {
      const rights = tokens[tokenOf(authorization) ?? ""];
      if (rights === undefined) return end(401, "", { "www-authenticate": 'Basic realm="forge"' });
      const isPush = `${pathname}${search}`.includes("git-receive-pack");
      const right = isPush ? rights.push : rights.fetch;
      if (rights.fetch?.test(repository) !== true) return end(404);
      if (right?.test(repository) !== true)
        return end(403, "You may not push.\n", { "content-type": "text/plain" });
    }
    if (pathname.endsWith("/info/lfs/objects/batch"))
      return end(200, batch(body ?? "", repository, authorization), {
        "content-type": "application/vnd.git-lfs+json",
      });
    if (pathname.endsWith("/info/lfs/verify")) return end(200);
    if (!isGit) return end(404);
    serveGit(folder, request, response, barePath(request));
  }

  function batch(body: string, repository: string, authorization: string): string {
    const { objects, operation } = JSON.parse(body) as {
      operation: "upload" | "download";
      objects: { oid: string; size: number }[];
    };
    const mint = (scheme: string) => {
      const token = randomBytes(32).toString("hex");
      const value =
        scheme === "Basic"
          ? `Basic ${Buffer.from(`acme:${token}`).toString("base64")}`
          : `${scheme} ${token}`;
      minted.add(value);
      return value;
    };
    const form = lfsForms[lfsFormOf.get(repository) ?? "signed"];
    const origin = `https://${forgeHost}:${port}`;
    return JSON.stringify({
      transfer: "basic",
      objects: objects.map(({ oid, size }) => ({
        oid,
        size,
        actions: form({ origin, repository, operation, oid, size, authorization, mint }),
      })),
    });
  }

  const api = pullRequests(
    (repository, branch) => {
      try {
        return run(bare(repository), ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`]) !== "";
      } catch {
        return false;
      }
    },
    (token, repository) => tokens[token]?.push?.test(`/${repository}`) === true,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const bare = (path: string) => join(folder, `${path}.git`);
  const run = (cwd: string, args: readonly string[]) =>
    execFileSync("git", [...identity, ...args], { cwd, env: plainGit, stdio: ["ignore", "pipe", "pipe"] })
      .toString()
      .trim();
  return {
    port,
    authority: authority.certificate,
    served,
    url: (path) => `https://${forgeHost}:${port}/${path}`,
    repository: (path, files, prepare) => {
      const made = mkdtempSync(join(folder, "made-"));
      run(made, ["init", "-q", "-b", "main", "."]);
      for (const [name, content] of Object.entries(files)) {
        const file = join(made, name.replace(/\*$/, ""));
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, content, { mode: name.endsWith("*") ? 0o755 : 0o644 });
      }
      run(made, ["add", "-A"]);
      prepare?.((...args) => run(made, args), made);
      run(made, ["commit", "-qm", "The first commit"]);
      // A second attempt of a test begins with a new one.
      rmSync(bare(path), { recursive: true, force: true });
      mkdirSync(dirname(bare(path)), { recursive: true });
      run(folder, ["clone", "-q", "--bare", made, bare(path)]);
      return run(bare(path), ["rev-parse", "main"]);
    },
    git: (path, ...args) => run(bare(path), args),
    clone: (path, into) => void run(folder, ["clone", "-q", bare(path), into]),
    answerLfs: (path, form) => void lfsFormOf.set(`/${path}`, form),
    lfs: (content) => {
      const oid = createHash("sha256").update(content).digest("hex");
      contents.set(oid, Buffer.from(content));
      return `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${Buffer.byteLength(content)}\n`;
    },
    lfsContent: (oid) => contents.get(oid)?.toString(),
    pulls: api.pulls,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function tokenOf(authorization: string): string | undefined {
  const [scheme = "", sent = ""] = authorization.split(" ");
  return scheme === "Basic" ? Buffer.from(sent, "base64").toString().split(":")[1] : sent;
}

/** Of a repository's bare folder, which its URL may leave out. */
const barePath = (request: IncomingMessage) =>
  new URL(request.url ?? "/", "https://forge").pathname.replace(
    /^(.*?)(?:\.git)?(\/info\/refs|\/git-(?:upload|receive)-pack)$/,
    "$1.git$2",
  );
