import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { makeAuthority } from "@ambit/egress/credentials";
import { listening } from "@ambit/fakes/listening";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { CredentialHost } from "@ambit/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { demo, emptyFolder, type Server, serve } from "../support/ambit.js";
import { serveFromPods } from "../support/backends/serve-from.js";
import { withForge } from "../support/configurations.js";

const secretOf = (name: string) => `kept-outside-${name}-0123456789`;
const platformKey = "Bearer key-of-the-platform-00";
/** Seconds that the platform's first value is valid; it may give none that is valid for less than 10. */
const validSeconds = 12;

/** Sends the credential twice, the second time when the platform's first value has expired, and keeps what the host repeats. */
const program = (url: string) => `
const { writeFileSync } = require("node:fs");
async function ask(file) {
  const response = await fetch(${JSON.stringify(url)}, { headers: { authorization: "Bearer " + process.env.KEY } });
  const echo = response.headers.get("x-echo");
  writeFileSync(file, echo + "\\n" + (await response.text()));
  console.log(response.status, "with", echo.split(" ")[0]);
}
(async () => {
  await ask("first.txt");
  await new Promise((resolve) => setTimeout(resolve, ${validSeconds + 1} * 1_000));
  await ask("second.txt");
})();
`;

/** Names what is found of a value, in files and in each process that the agent sees. It doesn't find itself. */
const look = [
  `sought='[k]ept-outside-(old|one|two|control)|[6]b6570742d6f757473696465'`,
  `found() { grep -aohE "$sought" "$@" 2>/dev/null; }`,
  `(found -r . ~ /tmp /etc /run /var /dev/shm; found /proc/[0-9]*/environ /proc/[0-9]*/cmdline) | sed 's/.*-//' | sort -u | tr '\\n' ' '`,
].join("\n");

/** Gives a value that is valid for a short time, then one for an hour. */
async function startPlatform() {
  const questions: unknown[] = [];
  const platform = createServer(async (request, response) => {
    const { authorization } = request.headers;
    questions.push({ authorization, ...JSON.parse(await text(request)) });
    const isFirst = questions.length === 1;
    const expiresAt = new Date(Date.now() + (isFirst ? validSeconds : 3_600) * 1_000).toISOString();
    response.end(JSON.stringify({ value: secretOf(isFirst ? "one" : "two"), expiresAt }));
  });
  return { url: `http://127.0.0.1:${await listening(platform, onTestFinished)}/values`, questions };
}

async function startHost() {
  const host = await CredentialHost.openIn(await emptyFolder(), makeAuthority);
  onTestFinished(() => host.credentialHost.close());
  return host;
}

/** The given value has no known expiry, so the platform is asked before the first use, however long the sandbox took to open. */
async function expectRefreshed(
  server: Server,
  sandbox: string,
  credentialHost: CredentialHost,
): Promise<void> {
  const { url, questions } = await startPlatform();
  const { names, port, allowlist } = credentialHost;
  const host = `${names.keys}:${port}`;
  const body = {
    ...demo("run node send.cjs; sh look.sh", "say done"),
    sandbox,
    sessionId: "refreshed",
    harnessFiles: [
      { path: "send.cjs", content: program(`https://${host}/echo`) },
      { path: "look.sh", content: look },
    ],
    sandboxPermission: { filesystem: "workspace", network: { allowlist } },
    credentials: [
      {
        name: "KEY",
        value: secretOf("old"),
        hosts: [host],
        as: "bearer",
        refresh: { url, authorization: platformKey },
      },
    ],
    // The control: the same search finds what is inside.
    sandboxCredentials: [{ binding: { kind: "environment", name: "INSIDE" }, value: secretOf("control") }],
  };
  const told = await (await server.post("/run", body)).text();
  const result = JSON.parse(told);
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
  expect(String(ended?.output).trim().split("\n")).toEqual([
    "200 with Bearer",
    "200 with Bearer",
    expect.stringMatching(/^control\s*$/),
  ]);
  const { runId } = result;
  const question = { authorization: platformKey, name: "KEY", sessionId: "refreshed", runId };
  expect(questions).toEqual([question, question]);
  const sent = credentialHost.received("/echo").map(({ rawHeaders }) => rawHeaders);
  expect(sent).toEqual([
    expect.arrayContaining([`Bearer ${secretOf("one")}`]),
    expect.arrayContaining([`Bearer ${secretOf("two")}`]),
  ]);
  for (const secret of [...["old", "one", "two"].map(secretOf), platformKey.slice(7)])
    expect(told + server.log()).not.toContain(secret);
}

const whyBrief =
  process.env.AMBIT_SOAK === undefined ? "this waits for an expiry: set AMBIT_SOAK=1" : undefined;

describe("a credential that expires during a run gets a new value, which stays outside", {
  timeout: 240_000,
}, () => {
  it("of a container", async (context) => {
    const missing = whyBrief ?? unavailableReason("runc");
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const { socket, image } = dockerEngine();
    const { credentialHost, authorityFile } = await startHost();
    const engine = {
      TEST_DOCKER_SOCKET: socket,
      TEST_DOCKER_IMAGE: image,
      TEST_DOCKER_RUNTIME: "runc",
      TEST_DOCKER_DATA: await emptyFolder(),
    };
    const server = await serve({ TEST_FORGE_AUTHORITY: authorityFile, ...engine }, withForge);
    await expectRefreshed(server, "runc", credentialHost);
  });

  it("of a pod", async (context) => {
    const missing = whyBrief ?? (await ownUnavailableReason());
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const { credentialHost, authorityFile } = await startHost();
    const server = await serveFromPods({}, { trustedAuthorities: [authorityFile] });
    await expectRefreshed(server, "kubernetes", credentialHost);
  });
});
