import { execFile } from "node:child_process";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { RunResult, StreamRecord } from "@ambit/core";
import { makeAuthority } from "@ambit/egress/credentials";
import { startModelServer } from "@ambit/model-server";
import { type OwnCluster, ownUnavailableReason, testCluster } from "@ambit/test-cluster";
import { imageArchive } from "@ambit/test-machine";
import { CredentialHost } from "@ambit/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { demo, emptyFolder, ndjson, recordsOf, repository, type Server, serve } from "../support/ambit.js";
import { callbackServer, callbackTool } from "../support/callback-server.js";

const run = promisify(execFile);
const pods = ["--config", fileURLToPath(new URL("pods.config.mjs", import.meta.url))];
const key = "key-that-stays-outside-0123456789";
const object = (properties: object) => ({ type: "object", properties, required: Object.keys(properties) });

const weather = callbackTool("weather", {
  description: "Weather.",
  inputSchema: object({ city: { type: "string" } }),
});
/** Those that need no network. */
const ownTools = [
  {
    name: "measure",
    description: "Measures a text.",
    kind: "code",
    runtime: "python",
    code: "import os\ndef main(text): return [len(text), 'KEY' in os.environ]",
    permission: "allow",
    inputSchema: object({ text: { type: "string" } }),
  },
  {
    name: "choose",
    description: "Asks the user.",
    kind: "client",
    inputSchema: object({ question: { type: "string" } }),
  },
];

/** `strict`, with everything that a pod can limit. */
const strict = {
  filesystem: "workspace",
  secrets: "hidden",
  resources: { memoryMb: 768, cpus: 1, diskMb: 64 },
  enforcement: "strict",
};
const limited = [
  "filesystem.workspace-only",
  "secrets.hidden",
  "resources.memory",
  "resources.cpu",
  "resources.disk",
  "environment.named-only",
];

/** A server whose runs get pods, with what its credentials are sent to. */
async function serverOf(own: OwnCluster, kubeconfig: string, image: string) {
  const namespace = await own.createNamespace({}, { enforced: false });
  onTestFinished(() => namespace.remove());
  const folder = await emptyFolder();
  const { credentialHost, authorityFile } = await CredentialHost.openIn(folder, makeAuthority);
  onTestFinished(() => credentialHost.close());
  const settings = {
    kubeconfig,
    image,
    namespace: namespace.name,
    pull: "Never",
    hostUsers: "require",
    dataFolder: join(folder, "data"),
    scratchMb: 64,
    trustedAuthorities: [authorityFile],
    reserve: { cpus: 0.01, memoryMb: 32 },
  };
  const server = await serve({ TEST_PODS: JSON.stringify(settings) }, pods);
  const left = async () => {
    const api = own.api();
    try {
      return (await api.request("GET", `/api/v1/namespaces/${namespace.name}/pods`)).items;
    } finally {
      api.close();
    }
  };
  return { server, credentialHost, left };
}

/** Runs it, and answers the client tool like the user's browser. */
async function runOn({ url, post }: Server, request: object) {
  const records: StreamRecord[] = [];
  let runId = "";
  for await (const record of recordsOf(await post("/run", request, ndjson))) {
    records.push(record);
    if (record.kind === "result") return { result: record.result, text: JSON.stringify(records) };
    const { event } = record;
    if (event.type === "data" && event.name === "run") runId = String(Object(event.data).runId);
    if (event.type !== "interaction_request" || event.kind !== "client_tool") continue;
    await fetch(`${url}/runs/${runId}/interactions/${event.id}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ output: "the blue one" }),
    });
  }
  throw new Error("there is no result");
}

const guaranteesOf = ({ receipt }: RunResult) => receipt?.guarantees.map(({ capability }) => capability);

/** What sends the credential to its host, and what to an address that isn't listed. */
const fetchWithKey = (url: string) =>
  `node -e 'fetch("${url}",{headers:{authorization:"Bearer "+process.env.KEY}}).then(r=>r.text()).then(t=>console.log("host: "+t.slice(0,8)),e=>console.log("no way",String(e.cause)))'`;

const reason = await ownUnavailableReason();

describe("a run in a pod", () => {
  it("has all kinds of tools within every limit, and uses a key that isn't inside", {
    timeout: 180_000,
  }, async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own, kubeconfig, image } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const { server, credentialHost, left } = await serverOf(own, kubeconfig, image);
    const platform = await callbackServer((_name, { city }) => ({ city, sky: "clear" }));
    const closed = runOn(server, {
      ...demo(
        'call measure {"text":"abc"}',
        'call choose {"question":"Which coat?"}',
        "write made.txt one",
        "run hostname; cat made.txt; touch /outside || echo kept",
        "say All done.",
      ),
      sandbox: "kubernetes",
      sandboxPermission: { ...strict, network: "off" },
      interactions: { waitMs: 60_000 },
      customTools: ownTools,
    });
    const platformHost = new URL(platform.endpoint).host;
    const host = `${credentialHost.names.keys}:${credentialHost.port}`;
    const localHosts = [host, `127.0.0.1:${credentialHost.port}`];
    const listed = runOn(server, {
      ...demo(
        'call weather {"city":"Bern"}',
        'call measure {"text":"abc"}',
        `run ${fetchWithKey(`https://${host}/echo`)}`,
        "run env",
        "say Sent.",
      ),
      toolCallback: { endpoint: platform.endpoint },
      customTools: [weather, ...ownTools],
      sandbox: "kubernetes",
      sandboxPermission: { ...strict, network: { allowlist: [...localHosts, platformHost] } },
      credentials: [{ name: "KEY", value: key, hosts: [host], as: "bearer" }],
    });

    const [first, second] = await Promise.all([closed, listed]);
    expect(first.result, `${JSON.stringify(first.result.failure)} ${server.log()}`).toMatchObject({
      ok: true,
      output: expect.stringContaining("All done."),
      receipt: { sandbox: "kubernetes", enforcement: "strict", confinement: "confined" },
    });
    expect(guaranteesOf(first.result)).toEqual(expect.arrayContaining(["network.deny", ...limited]));
    for (const said of ["[3,false]", "the blue one", "sandbox", "kept"]) expect(first.text).toContain(said);
    expect(platform.calls.map(({ arguments: given }) => given)).toEqual([{ city: "Bern" }]);

    expect(second.result, `${JSON.stringify(second.result.failure)} ${server.log()}`).toMatchObject({
      ok: true,
      receipt: { visibleCredentials: [], credentials: [{ name: "KEY", hosts: [host] }] },
    });
    expect(guaranteesOf(second.result)).toEqual(expect.arrayContaining(["network.allow-host", ...limited]));
    for (const said of ["clear", "[3,false]", "host: you sent"]) expect(second.text).toContain(said);
    expect(second.text).not.toContain(key);
    expect(credentialHost.received(key)).toHaveLength(1);
    await expect.poll(left).toEqual([]);
  });

  it("is a real agent's, whose model's key is never inside", { timeout: 300_000 }, async (context) => {
    if (process.env.AMBIT_SOAK === undefined) context.skip("host: this takes minutes: set AMBIT_SOAK=1");
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own, kubeconfig } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const image = "ambit.local/gemini:1";
    await importGemini(own, image);
    const { server, credentialHost, left } = await serverOf(own, kubeconfig, image);
    await using model = await startModelServer({ expectedKey: key });
    const platform = await callbackServer((_name, { city }) => ({ city, sky: "clear" }));
    const host = `${credentialHost.names.keys}:${credentialHost.port}`;
    const listed = [host, `127.0.0.1:${credentialHost.port}`, new URL(platform.endpoint).host];
    for (const network of ["off", { allowlist: listed }]) {
      const hasNetwork = network !== "off";
      const script = [
        ...(hasNetwork ? ['[[call weather {"city":"Bern"}]]'] : []),
        '[[call measure {"text":"abc"}]]',
        '[[call choose {"question":"Which coat?"}]]',
        `[[shell env; hostname; curl -sS -m 5 -H "authorization: Bearer $KEY" https://${host}/x || echo no way]]`,
        "[[say All done.]]",
      ];
      const { result, text } = await runOn(server, {
        sandbox: "kubernetes",
        harness: "gemini",
        permissions: { default: "allow" },
        sandboxPermission: { ...strict, resources: { memoryMb: 1536, cpus: 2 }, network },
        interactions: { waitMs: 60_000 },
        modelConnection: {
          provider: "google",
          endpoint: { baseUrl: model.url },
          credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: key }],
        },
        ...(hasNetwork
          ? { credentials: [{ name: "KEY", value: `${key}-2`, hosts: [host], as: "bearer" }] }
          : {}),
        toolCallback: { endpoint: platform.endpoint },
        customTools: hasNetwork ? [weather, ...ownTools] : ownTools,
        messages: [{ role: "user", content: script.join(" ") }],
      });
      expect(result, `${JSON.stringify(result.failure)} ${server.log()}`).toMatchObject({
        ok: true,
        output: expect.stringContaining("All done."),
        receipt: {
          visibleCredentials: [],
          credentials: expect.arrayContaining([expect.objectContaining({ by: "route" })]),
          evidence: { "agent.version": expect.stringMatching(/^\d+\.\d+\.\d+$/) },
        },
      });
      for (const said of ["[3,false]", "the blue one", ...(hasNetwork ? ["clear"] : [])])
        expect(text).toContain(said);
      expect(text).not.toContain(key);
      expect(credentialHost.received(`${key}-2`)).toHaveLength(hasNetwork ? 1 : 0);
    }
    await expect.poll(left).toEqual([]);
  });
});

/** The default image with Gemini CLI, as a deployer would install it. */
async function importGemini(own: OwnCluster, name: string): Promise<void> {
  const folder = await emptyFolder();
  await run("tar", ["-C", folder, "-xf", await imageArchive()]);
  const target = "usr/local/lib/gemini";
  await mkdir(join(folder, "usr/local/bin"), { recursive: true });
  await cp(join(repository, "node_modules/@google/gemini-cli"), join(folder, target), { recursive: true });
  await run("ln", ["-s", `/${target}/bundle/gemini.js`, join(folder, "usr/local/bin/gemini")]);
  await own.importImage({ name, root: { folder }, command: ["sleep", "infinity"] });
}
