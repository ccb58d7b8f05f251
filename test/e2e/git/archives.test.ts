// needs: jail, git
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer, type Server as HttpsServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SecureContext } from "node:tls";
import { makeAuthority } from "@ambit/egress/credentials";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { demo, type Server, startServer } from "../support/ambit.js";
import { withForge } from "../support/configurations.js";

const token = `dl_${"download0".repeat(4)}`;
const folder = mkdtempSync(join(tmpdir(), "ambit-archives-"));
const closed = { sandboxPermission: { network: "off", filesystem: "workspace" } };
/** What reached the host of the URL, or the store that it leads to, which is another one by its port. */
const served: { url: string; authorization: string }[] = [];
let archive: Buffer;
let host: HttpsServer;
let store: HttpsServer;
let port: number;
let server: Server;
let guarded: Server;

beforeAll(async () => {
  const made = join(folder, "made");
  mkdirSync(join(made, "app"), { recursive: true });
  writeFileSync(join(made, "app/hello.txt"), "from the archive");
  symlinkSync("/etc/passwd", join(made, "app/passwd"));
  archive = execFileSync("tar", ["-cz", "-C", made, "app"]);
  const authority = await makeAuthority();
  const serve = async (answer: RequestListener) => {
    const SNICallback = (name: string, done: (error: Error | null, context?: SecureContext) => void) => {
      authority.contextFor(name).then((context) => done(null, context), done);
    };
    const made = createServer({ SNICallback }, (request, response) => {
      const { headers, url = "" } = request;
      served.push({ url, authorization: headers.authorization ?? "" });
      answer(request, response);
    }).listen(0, "127.0.0.1");
    await once(made, "listening");
    return made;
  };
  store = await serve(({ url }, response) => {
    if (url === "/stored?sig=signature-of-a-store") response.end(archive);
    else response.writeHead(403).end();
  });
  host = await serve(({ headers, url = "" }, response) => {
    if (url === "/slow") return;
    if (headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end();
    if (url.startsWith("/private")) return void response.end(archive);
    const location = `https://localhost:${portOf(store)}/stored?sig=signature-of-a-store`;
    if (url === "/elsewhere") return void response.writeHead(302, { location }).end();
    response.writeHead(url === "/locked" ? 403 : 404).end();
  });
  port = portOf(host);
  const file = join(folder, "authority.pem");
  writeFileSync(file, authority.certificate);
  const start = (allowedRanges: readonly string[]) =>
    startServer(
      {
        NODE_EXTRA_CA_CERTS: file,
        TEST_WORKSPACE: JSON.stringify({ maxSourceMiB: 1, sourcesTimeoutMs: 10_000, allowedRanges }),
        AMBIT_BLOBS_FOLDER: join(folder, "blobs"),
      },
      withForge,
    );
  server = await start(["127.0.0.0/8", "::1"]);
  guarded = await start([]);
}, 120_000);
afterAll(async () => {
  for (const one of [server, guarded]) {
    one.process.kill("SIGTERM");
    await one.exit;
  }
  for (const one of [host, store]) {
    one.closeAllConnections();
    one.close();
  }
  rmSync(folder, { recursive: true, force: true });
});

function portOf(listening: HttpsServer): number {
  const address = listening.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
const digest = () => createHash("sha256").update(archive).digest("hex");
const at = (path: string, more: object = {}) => ({
  type: "archive",
  url: `https://localhost:${port}${path}`,
  format: "tar.gz",
  sha256: digest(),
  credential: { value: token },
  ...more,
});

async function runWith(source: object, on = server) {
  const body = {
    ...demo("run cat app/hello.txt; ls app; env; grep -r dl_download . ~", "say done"),
    ...closed,
    workspace: { sources: [source] },
  };
  const text = await (await on.post("/run", body)).text();
  expect(text + on.log()).not.toContain(token);
  return JSON.parse(text);
}

describe("an archive of a URL", { timeout: 180_000 }, () => {
  it("comes in with a credential that stays outside, and the agent has no network", async () => {
    const result = await runWith(at("/private/app.tar.gz?key=secret-of-a-query"));
    expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
    expect(result.receipt.sources).toMatchObject([
      {
        type: "archive",
        url: `https://localhost:${port}/private/app.tar.gz`,
        archive: { sha256: digest(), bytes: archive.length },
        files: 1,
        omitted: [{ path: "app/passwd", reason: "link" }],
      },
    ]);
    expect(JSON.stringify(result.events)).toContain("from the archive");
    expect(JSON.stringify(result) + server.log()).not.toContain("secret-of-a-query");
  });

  it("is followed to its store, which doesn't get the credential", async () => {
    const before = served.length;
    const result = await runWith(at("/elsewhere"));
    expect(result, server.log()).toMatchObject({ ok: true });
    expect(served.slice(before).map(({ url, authorization }) => [url, authorization])).toEqual([
      ["/elsewhere", `Bearer ${token}`],
      ["/stored?sig=signature-of-a-store", ""],
    ]);
    expect(JSON.stringify(result) + server.log()).not.toContain("signature-of-a-store");
  });

  it("is refused where its address isn't allowed, before anything is sent", async () => {
    // The control is above: the same URL, where the address is allowed.
    const before = served.length;
    const result = await runWith(at("/private/app.tar.gz"), guarded);
    expect(result).toMatchObject({ ok: false, failure: { code: "source_failed", reason: "unreachable" } });
    expect(result.error).toContain("workspace.allowedRanges");
    expect(served.length).toBe(before);
  });

  it.for<[what: string, reason: string, source: () => object]>([
    ["without a credential", "authentication", () => at("/private", { credential: undefined })],
    ["that the credential may not have", "forbidden", () => at("/locked")],
    ["that isn't there", "not_found", () => at("/nowhere")],
    ["with another digest", "digest_mismatch", () => at("/private", { sha256: "0".repeat(64) })],
    ["of a host that doesn't answer", "timed_out", () => at("/slow")],
    ["of a closed port", "unreachable", () => at("", { url: "https://localhost:9/x" })],
  ])("%s fails the run before the agent starts", async ([, reason, source]) => {
    const { ok, failure, error, events } = await runWith(source());
    expect({ ok, failure }).toMatchObject({ ok: false, failure: { code: "source_failed", reason } });
    expect(error).toMatch(/^workspace\.sources\[0\] /);
    expect(JSON.stringify(events)).not.toContain("tool_call");
  });

  it("is refused by its field when it can't be meant", async () => {
    const issues = async (source: object) => {
      const body = { ...demo("say hi"), ...closed, workspace: { sources: [source] } };
      return JSON.parse(await (await server.post("/plan", body)).text()).failure?.issues;
    };
    const path = "workspace.sources[0].url";
    expect(await issues(at("", { url: "http://files.example/a" }))).toMatchObject([{ path }]);
    expect(await issues(at("", { url: "http://127.0.0.1/a" }))).toMatchObject([
      { path, message: expect.stringContaining("credential") },
    ]);
    expect(await issues(at("", { url: `https://user:${token}@files.example/a` }))).toMatchObject([{ path }]);
    expect(await issues(at("", { sha256: undefined }))).toMatchObject([
      { path: "workspace.sources[0].sha256" },
    ]);
  });
});
