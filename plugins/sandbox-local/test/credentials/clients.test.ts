// needs: jail
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectionDecision, Sandbox } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { makeDataFolder } from "../conformance/backend.mjs";
import { closed, path, run, scope, shell, specOf } from "../support/specs.js";
import { host, type PrivateHost, startPrivateHost } from "./private-host.js";

const password = `ghp_${"p4ssw0rd".repeat(5)}`;
const token = "token-of-the-private-host-0123456789";

/**
 * A folder of this machine with further clients in its `bin`: those that no package of this repository brings, such as Deno. With
 * it, their rows run too (`npm install deno bun; pip install uv`).
 */
const moreClients = process.env.AMBIT_TEST_CLIENTS;
const searched = [path, ...(moreClients === undefined ? [] : [join(moreClients, "bin")])].join(":");
const isHere = (program: string) => searched.split(":").some((folder) => existsSync(join(folder, program)));

let server: PrivateHost;
/** The same host under another name, which no credential is for. */
const other = "other.test";
let sandbox: Sandbox;
/** Sandboxes without credentials: with the configuration's authority, and without it. */
let trusting: Sandbox;
let doubting: Sandbox;
const decisions: ConnectionDecision[] = [];

beforeAll(async () => {
  server = await startPrivateHost(password, token);
  const dataFolder = makeDataFolder();
  const authority = join(dataFolder, "authority.pem");
  writeFileSync(authority, server.authority);
  const config = configSchema.parse({
    dataFolder,
    trustedAuthorities: [authority],
    readOnlyMounts: moreClients === undefined ? [] : [moreClients],
  });
  const hosts = [`${host}:${server.port}`];
  const rules = [
    { kind: "host", name: host, subdomains: false, port: server.port },
    { kind: "host", name: other, subdomains: false, port: server.port },
    { kind: "range", cidr: "127.0.0.1/32", family: 4, port: server.port },
  ] as const;
  const plain = specOf({ boundary: { ...closed, network: { mode: "allowlist", rules } } });
  const backend = new LocalSandbox(config, async () => ["127.0.0.1"]);
  trusting = await backend.open(plain, scope);
  const without = configSchema.parse({ dataFolder: makeDataFolder() });
  doubting = await new LocalSandbox(without, async () => ["127.0.0.1"]).open(plain, scope);
  sandbox = await backend.open(
    specOf({
      boundary: { ...closed, network: { mode: "allowlist", rules }, secrets: "hidden" },
      secrets: [
        { name: "GIT_TOKEN", value: password, hosts, as: "basic" },
        { name: "READ_TOKEN", value: password, hosts, as: "basic", paths: ["/shared/*"], access: "read" },
        { name: "API_TOKEN", value: token, hosts, as: "bearer" },
        { name: "SCOPE_TOKEN", value: token, hosts, as: "bearer", paths: ["/npm/@acme/*"], access: "read" },
      ],
      onDecision: (decision) => decisions.push(decision),
    }),
    scope,
  );
}, 60_000);
afterAll(async () => {
  for (const opened of [sandbox, trusting, doubting]) await opened.close();
  await server.close();
});

async function inside(script: string): Promise<string> {
  const env = { PATH: searched, HOST: `${host}:${server.port}`, ...sandbox.placeholders };
  const { stdout, stderr } = await run(sandbox, shell(`exec 2>&1; ${script}`), { env, role: "agent" });
  expect(stdout).not.toContain(password);
  expect(stdout).not.toContain(token);
  return stdout + stderr;
}

const git = "git -c user.name=a -c user.email=a@example.com";
const change = (name: string) =>
  `cd ${name} && head -c 3000000 /dev/urandom > big && git add big && ${git} commit -qm ${name}`;
const called = "API_TOKEN";
/** A script for a runtime with `fetch`. */
const fetched = (variable: string) =>
  `fetch("https://" + ${variable}("HOST") + "/api", { headers: { authorization: "Bearer " + ${variable}("${called}") } }).then((got) => got.text()).then(console.log, console.error)`;
/** In two parts, since it looks like a credential. */
const npmSetting = ["_auth", "Token"].join("");

/** A compiler starts with an empty cache. */
const timeout = moreClients === undefined ? 60_000 : 400_000;

describe("with credentials that stay outside its jail", { timeout }, () => {
  test.for<[name: string, needs: string, script: string, prints: RegExp]>([
    [
      "git clones and pushes a private repository, and leaves no credential in it",
      "git",
      `git clone -q https://$HOST/repository one && ${change("one")} && git push -q origin HEAD
       git fetch -q && git status -sb | head -1; grep -rsl "$GIT_TOKEN" .git | wc -l; git config --local -l | grep -ci extraheader`,
      /^## \S+\.\.\.origin\/\S+\n0\n0\n$/,
    ],
    [
      "git clones with a read-only credential, and reports why it can't push",
      "git",
      `git clone -q https://$HOST/shared/repository two && ${change("two")} && git push -q origin HEAD`,
      /remote: Ambit's boundary refused this request: READ_TOKEN is for reading only/,
    ],
    [
      "curl",
      "curl",
      `curl -sS -H "Authorization: Bearer $${called}" https://$HOST/api`,
      /^served to Bearer /,
    ],
    [
      "urllib",
      "python3",
      `python3 -c 'import os, urllib.request as r; print(r.urlopen(r.Request("https://%s/api" % os.environ["HOST"], headers={"Authorization": "Bearer " + os.environ["${called}"]})).read().decode())'`,
      /^served to Bearer /,
    ],
    [
      "requests",
      "python3",
      `python3 -c 'import os
try:
    import requests
except ImportError:
    from pip._vendor import requests
print(requests.get("https://%s/api" % os.environ["HOST"], headers={"Authorization": "Bearer " + os.environ["${called}"]}).text)'`,
      /^served to Bearer /,
    ],
    [
      "Java, with a store that holds the session's authority",
      "javac",
      `echo 'public class Get { public static void main(String[] args) throws Exception { var c = new java.net.URL(args[0]).openConnection(); c.setRequestProperty("Authorization", "Bearer " + System.getenv("${called}")); System.out.write(c.getInputStream().readAllBytes()); System.out.flush(); } }' > Get.java; javac -nowarn Get.java >/dev/null 2>&1
       keytool -importcert -noprompt -alias ambit -file "$NODE_EXTRA_CA_CERTS" -keystore store -storepass changeit >/dev/null 2>&1
       java -Djavax.net.ssl.trustStore=$PWD/store -Djavax.net.ssl.trustStorePassword=changeit -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 Get https://$HOST/api`,
      /^served to Bearer /,
    ],
    [
      "pip",
      "pip3",
      `python3 -m pip download -q --no-deps --index-url https://x-access-token:$GIT_TOKEN@$HOST/index part; ls`,
      /part-1-py3-none-any\.whl/,
    ],
    [
      "npm",
      "npm",
      `mkdir n; cd n; echo '{}' > package.json; echo "//$HOST/:${npmSetting}=\\\${${called}}" > .npmrc
       npm install --registry https://$HOST/npm --no-audit --no-fund --silent part; cat node_modules/part/package.json`,
      /"name":"part"/,
    ],
    [
      "npm, limited to a scope",
      "npm",
      `mkdir s; cd s; echo '{}' > package.json; echo "//$HOST/:${npmSetting}=\\\${SCOPE_TOKEN}" > .npmrc
       npm install --registry https://$HOST/npm --no-audit --no-fund --silent part; ls node_modules
       npm install --registry https://$HOST/npm --no-audit --no-fund --silent @acme/part; cat node_modules/@acme/part/package.json`,
      /No such file or directory(.|\n)*"name":"part"/,
    ],
    [
      "Go",
      "go",
      `export CGO_ENABLED=0 GOCACHE=$PWD/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local; printf 'module get\\n' > go.mod
       printf 'package main\\nimport ("fmt"; "io"; "net/http"; "os")\\nfunc main() { q, _ := http.NewRequest("GET", "https://"+os.Getenv("HOST")+"/api", nil); q.Header.Set("Authorization", "Bearer "+os.Getenv("${called}")); r, err := http.DefaultClient.Do(q); if err != nil { panic(err) }; io.Copy(os.Stdout, r.Body); fmt.Println() }\\n' > main.go
       go run main.go`,
      /^served to Bearer /,
    ],
    [
      "Deno",
      "deno",
      `DENO_DIR=$PWD/deno DENO_NO_UPDATE_CHECK=1 deno eval '${fetched("Deno.env.get")}'`,
      /^served to Bearer /,
    ],
    ["Bun", "bun", `bun -e '${fetched("(name => process.env[name])")}'`, /^served to Bearer /],
    [
      "uv",
      "uv",
      `uv pip install -q --no-cache --target parts --python python3 --index-url https://x-access-token:$GIT_TOKEN@$HOST/index part; ls parts`,
      /part-1\.dist-info/,
    ],
    [
      "cargo",
      "cargo",
      `export CARGO_HOME=$PWD/home CARGO_REGISTRIES_OURS_INDEX=sparse+https://$HOST/cargo/ CARGO_REGISTRIES_OURS_TOKEN="Bearer $${called}"
       mkdir -p home c/src; echo 'fn main() {}' > c/src/main.rs; cd c
       printf '[registry]\\nglobal-credential-providers = ["cargo:token"]\\n' > ../home/config.toml
       printf '[package]\\nname = "c"\\nversion = "1.0.0"\\nedition = "2021"\\n[dependencies]\\npart = { version = "1", registry = "ours" }\\n' > Cargo.toml
       cargo fetch 2>&1; find ../home/registry -name 'part-1.0.0'`,
      /part-1\.0\.0\n$/,
    ],
  ])("%s", async ([, needs, script, prints], context) => {
    if (!isHere(needs)) context.skip(`host: no ${needs}`);
    expect(await inside(script)).toMatch(prints);
  });

  test("Node's fetch", async () => {
    const script = `fetch("https://" + process.env.HOST + "/api", { headers: { authorization: "Bearer " + process.env.${called} } })
      .then((got) => got.text()).then(console.log, console.error)`;
    expect(await inside(`'${process.execPath}' -e '${script}'`)).toMatch(/^served to Bearer /);
  });

  test("the trust store works without variables too", async (context) => {
    if (!existsSync("/usr/bin/curl") || !existsSync("/etc/ssl/certs"))
      context.skip("host: no curl, or no /etc/ssl/certs");
    const script = `for name in SSL_CERT_FILE CURL_CA_BUNDLE; do unset $name; done; curl -sS -H "Authorization: Bearer $${called}" https://$HOST/api`;
    expect(await inside(script)).toMatch(/^served to Bearer /);
  });

  test("a tool's process has neither a placeholder nor git's settings", async () => {
    const { stdout } = await run(sandbox, shell("env"));
    expect(stdout).not.toMatch(/GIT_CONFIG|TOKEN/);
    expect(stdout).toMatch(/SSL_CERT_FILE=\/run\/ambit/);
  });

  test("the server got the values, and no record contains them", () => {
    expect(server.authorizations).toContain(`Bearer ${token}`);
    expect(decisions.some(({ allowed, reason }) => allowed && reason.includes("TLS ends here"))).toBe(true);
    expect(decisions.some(({ allowed, reason }) => !allowed && reason.includes("for reading only"))).toBe(
      true,
    );
    expect(JSON.stringify(decisions)).not.toMatch(new RegExp(`${password}|${token}`));
  });
});

describe("a company's authority, which the configuration names", { timeout: 60_000 }, () => {
  const node = `'${process.execPath}' -e 'fetch("https://" + process.env.HOST + "/").then((got) => console.log(got.status), (error) => console.log(error.cause.message))'`;
  test.for<[name: string, needs: string, script: string]>([
    ["Node's fetch", "sh", node],
    ["curl", "curl", `curl -sS -o /dev/null -w '%{http_code}' https://$HOST/`],
    [
      "curl without variables",
      "curl",
      `for name in SSL_CERT_FILE CURL_CA_BUNDLE; do unset $name; done; curl -sS -o /dev/null -w '%{http_code}' https://$HOST/`,
    ],
    [
      "requests",
      "pip3",
      `python3 -c 'import os
from pip._vendor import requests
print(requests.get("https://%s/" % os.environ["HOST"]).status_code)'`,
    ],
  ])("is trusted by %s, beside credentials and without any", async ([, needs, script], context) => {
    if (!isHere(needs)) context.skip(`host: no ${needs}`);
    const env = { PATH: path, HOST: `${other}:${server.port}` };
    const asked = async (asking: Sandbox) =>
      (await run(asking, shell(`exec 2>&1; ${script}`), { env })).stdout;
    expect(await asked(doubting)).toMatch(/certificate/);
    // The host itself answers: it wants a password.
    for (const asking of [trusting, sandbox]) expect(await asked(asking)).toMatch(/^401\s*$/);
  });
});
