// needs: docker
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { unavailableReason } from "@ambit/docker-engine";
import { makeAuthority } from "@ambit/egress/credentials";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { configSchema, DockerSandbox } from "../src/index.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const host = "private.test";
const password = `ghp_${"p4ssw0rd".repeat(5)}`;
const token = "token-of-the-private-host-0123456789";
const reason = unavailableReason();

/** A TLS server that requires the values: `/api`, and a git repository as static files. */
async function startPrivateHost(folder: string) {
  const repository = join(folder, "repository");
  const git = (...args: string[]) => execFileSync("git", ["-C", repository, ...args], { stdio: "ignore" });
  execFileSync("git", ["init", "-q", repository]);
  await writeFile(join(repository, "file"), "private\n");
  git("add", "file");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one");
  git("update-server-info");
  const authority = await makeAuthority();
  await writeFile(join(folder, "authority.pem"), authority.certificate);
  const basic = `Basic ${Buffer.from(`x-access-token:${password}`).toString("base64")}`;
  const server = createServer(
    { SNICallback: (name, done) => void authority.contextFor(name).then((made) => done(null, made), done) },
    async (request, response) => {
      const path = new URL(request.url ?? "/", "https://a").pathname;
      const sent = request.headers.authorization;
      if (sent !== (path === "/api" ? `Bearer ${token}` : basic)) return void response.writeHead(401).end();
      if (path === "/api") return void response.end(`served to ${sent}\n`);
      const file = await readFile(join(repository, ".git", path.slice(1))).catch(() => undefined);
      response.writeHead(file === undefined ? 404 : 200).end(file);
    },
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

describeUnless(reason)("with credentials that stay outside its container", () => {
  let folder: string;
  let server: Awaited<ReturnType<typeof startPrivateHost>>;
  let sandbox: RemoteSandbox;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-docker-credentials-"));
    server = await startPrivateHost(folder);
    const { port } = server.address() as AddressInfo;
    const settings = {
      ...settingsFor("runc", folder),
      trustedAuthorities: [join(folder, "authority.pem")],
    };
    const backend = new DockerSandbox(configSchema.parse(settings), async () => ["127.0.0.1"]);
    const rules = [
      { kind: "host", name: host, subdomains: false, port },
      { kind: "range", cidr: "127.0.0.1/32", family: 4, port },
    ] as const;
    const hosts = [`${host}:${port}`];
    sandbox = await backend.open(
      specOf(
        { network: { mode: "allowlist", rules }, secrets: "hidden" },
        {
          required: ["secrets.hidden"],
          secrets: [
            { name: "GIT_TOKEN", value: password, hosts, as: "basic" },
            { name: "API_TOKEN", value: token, hosts, as: "bearer" },
          ],
        },
      ),
      scope,
    );
  });
  afterAll(async () => {
    await sandbox?.close();
    server?.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  async function inside(script: string, role: "agent" | "tool" = "agent"): Promise<string> {
    const { port } = server.address() as AddressInfo;
    const env = {
      PATH: sandbox.facts.searchPath,
      HOST: `${host}:${port}`,
      ...(role === "agent" ? sandbox.placeholders : {}),
    };
    const argv = ["/bin/sh", "-c", `exec 2>&1; ${script}`] as const;
    const { stdout } = await runToEnd(sandbox, { argv, env, role });
    expect(stdout).not.toContain(password);
    expect(stdout).not.toContain(token);
    return stdout;
  }

  const ask = 'curl -sS -H "Authorization: Bearer $API_TOKEN" https://$HOST/api';
  it.for<[program: string, script: string, prints: RegExp]>([
    ["curl", ask, /^served to Bearer /],
    ["curl with the image's own store", `unset SSL_CERT_FILE CURL_CA_BUNDLE; ${ask}`, /^served to Bearer /],
    [
      "git",
      "git clone -q https://$HOST/ one; cat one/file; git -C one config -l --local | grep -ci header",
      /^private\n0\n$/,
    ],
    [
      "node",
      `node -e 'fetch("https://" + process.env.HOST + "/api", { headers: { authorization: "Bearer " + process.env.API_TOKEN } })
        .then((got) => got.text()).then(console.log, console.error)'`,
      /^served to Bearer /,
    ],
  ])("serves %s", async ([, script, prints]) => expect(await inside(script)).toMatch(prints));

  it("keeps the image's authorities, and keeps the run from changing its store", async () => {
    const script = `ls /etc/ssl/certs | wc -l; grep -c BEGIN "$SSL_CERT_FILE"
      for path in /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/new "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS"; do
        (echo x >> "$path") 2> /dev/null && echo "wrote $path"
      done; ls -d /etc/ssl/certs/new; env`;
    const [files = "", authorities = "", ...rest] = (await inside(script, "tool")).split("\n");
    expect(Number(files)).toBeGreaterThan(100);
    expect(Number(authorities)).toBeGreaterThan(100);
    expect(rest.join("\n")).not.toMatch(/wrote|GIT_CONFIG|_TOKEN/);
  });
});

/** What is asked without a credential, by programs of the default image that bring their own authorities and that don't. */
const programs: readonly (readonly [program: string, script: string])[] = [
  ["curl", 'curl -sS "https://$HOST/open"'],
  ["curl without variables", 'unset SSL_CERT_FILE CURL_CA_BUNDLE; curl -sS "https://$HOST/open"'],
  [
    "node",
    `node -e 'fetch("https://" + process.env.HOST + "/open").then((got) => got.text()).then(console.log, console.error)'`,
  ],
  [
    "python",
    `python3 -c 'import os, urllib.request as r; print(r.urlopen("https://" + os.environ["HOST"] + "/open").read().decode())'`,
  ],
];

describeUnless(reason)("with a company's authority", () => {
  it("lets an image's programs reach a host that has its certificate, and only with it", {
    timeout: 180_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-docker-authority-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const authority = await makeAuthority();
    await writeFile(join(folder, "company.pem"), authority.certificate);
    const server = createServer(
      { SNICallback: (name, done) => void authority.contextFor(name).then((made) => done(null, made), done) },
      (_request, response) => void response.end("served\n"),
    );
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const rules = [
      { kind: "host", name: host, subdomains: false, port },
      { kind: "range", cidr: "127.0.0.1/32", family: 4, port },
    ] as const;
    const outputs = async (trustedAuthorities: readonly string[]) => {
      const settings = { ...settingsFor("runc", folder), trustedAuthorities };
      const backend = new DockerSandbox(configSchema.parse(settings), async () => ["127.0.0.1"]);
      const sandbox = await backend.open(specOf({ network: { mode: "allowlist", rules } }), scope);
      onTestFinished(() => sandbox.close());
      const env = { PATH: sandbox.facts.searchPath, HOST: `${host}:${port}` };
      const asked: Record<string, string> = {};
      for (const [program, script] of programs) {
        const argv = ["/bin/sh", "-c", `exec 2>&1; ${script}`] as const;
        asked[program] = (await runToEnd(sandbox, { argv, env })).stdout.trim();
      }
      return asked;
    };
    const without = await outputs([]);
    for (const [program] of programs) expect(without[program], program).toMatch(/certificate|issuer/i);
    const served = Object.fromEntries(programs.map(([program]) => [program, "served"]));
    expect(await outputs([join(folder, "company.pem")])).toEqual(served);
  });
});
