import { SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { closed, listing, unlimited } from "./support/boundaries.js";
import {
  backendFor,
  expectNothingLeft,
  logged,
  open,
  printed,
  scopeOf,
  specOf,
  useLoopback,
} from "./support/loopback.js";
import { rewritingProxy } from "./support/rewriting-proxy.js";

const loopback = useLoopback();
/** A host's response, or nothing: a proxy's refusal isn't one. */
const get = (url: string) => {
  const said = "console.log(r.ok ? (await r.text()).trim() : 'refused')";
  return `node -e "fetch('${url}', { signal: AbortSignal.timeout(1500) }).then(async (r) => ${said}, () => console.log('refused'))"`;
};

describe("an open sandbox", () => {
  it("runs programs, has its limits on the receipt, and leaves nothing", async () => {
    const daytona = loopback();
    const backend = await backendFor(daytona);
    const required = ["network.deny", "process.contained", "environment.per-tool"] as const;
    const sandbox = await open(backend, { boundary: closed, required });
    expect(sandbox).toMatchObject({
      confinement: "confined",
      image: { searchPath: expect.stringContaining("/usr/bin") },
    });
    expect(await printed(sandbox, "echo hello; pwd")).toBe(`hello\n${sandbox.workspace}\n`);
    expect(sandbox.evidence).toMatchObject({
      "daytona.network": "networkBlockAll=true",
      "daytona.supervisor": expect.stringContaining("daemon"),
      "daytona.tried": expect.stringMatching(
        /10\.99\.0\.10:80.*lookup of name\.example\.test.*none was reached/,
      ),
    });
    await sandbox.close();
    await sandbox.close();
    await expectNothingLeft(daytona);
  });

  it.each([
    ["nothing", closed, "refused", "refused"],
    ["one name", listing("name.example.test"), "hello from name.example.test", "refused"],
    [
      "names below a suffix",
      listing("*.example.test"),
      "hello from name.example.test",
      "hello from other.example.test",
    ],
    ["everything", unlimited, "hello from name.example.test", "hello from other.example.test"],
  ])("reaches %s if that is allowed", async (_what, boundary, name, other) => {
    const sandbox = await open(await backendFor(loopback()), { boundary });
    const found = await printed(
      sandbox,
      [get("http://name.example.test/"), get("http://other.example.test/")].join("; "),
    );
    expect(found).toBe(`${name}\n${other}\n`);
  });

  it("reaches a listed range, and no other", async () => {
    const sandbox = await open(await backendFor(loopback()), { boundary: listing("10.99.0.10/32") });
    const found = await printed(sandbox, [get("http://10.99.0.10/"), get("http://10.99.0.11/")].join("; "));
    expect(found).toBe("hello from address.example.test\nrefused\n");
  });

  it("continues after its connections were interrupted", async () => {
    const daytona = loopback();
    const sandbox = await open(await backendFor(daytona));
    const echo = await sandbox.spawn({ argv: ["/bin/cat"], env: { PATH: sandbox.image?.searchPath ?? "" } });
    const [writer, output] = [echo.stdin.getWriter(), new Response(echo.stdout).text()];
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index}\n`);
    for (const [index, line] of lines.entries()) {
      await writer.write(Buffer.from(line));
      if (index % 10 === 5) expect(daytona.faults.cutLogStreams()).toBeGreaterThan(0);
    }
    await writer.close();
    expect(await output).toBe(lines.join(""));
  });

  it("hides a credential: a placeholder inside, the value at its host", async () => {
    const daytona = loopback();
    const value = "the-value-of-a-credential";
    const backend = await backendFor(daytona);
    const boundary = listing("*.example.test");
    const hosts = ["name.example.test"];
    expect(backend.hides({ name: "MODEL_KEY", value, hosts }, boundary)).toBe(true);
    const sandbox = await open(backend, { boundary, secrets: [{ name: "MODEL_KEY", value, hosts }] });
    const placeholder = sandbox.placeholders?.MODEL_KEY ?? "";
    expect(daytona.secrets()).toMatchObject([{ value, hosts, placeholder }]);
    expect(placeholder).not.toContain(value);

    daytona.world.clear();
    const send = (host: string) =>
      `fetch("http://${host}/", { headers: { authorization: "Bearer " + process.env.MODEL_KEY } })`;
    const program = `Promise.all([${send("name.example.test")}, ${send("other.example.test")}]).then(() => console.log("sent"))`;
    const env = { MODEL_KEY: placeholder };
    expect(
      await printed(
        sandbox,
        `node -e '${program}'; cat /proc/self/environ; grep -rs ${value} /tmp /etc /home`,
        env,
      ),
    ).not.toContain(value);
    const sent = daytona.world.requests().map(({ host, headers }) => [host, headers.authorization]);
    expect(Object.fromEntries(sent)).toEqual({
      "name.example.test": `Bearer ${value}`,
      "other.example.test": `Bearer ${placeholder}`,
    });
    await sandbox.close();
    await expectNothingLeft(daytona);
  });
});

describe("a sandbox whose limits aren't applied", () => {
  it.each([
    [
      "networkBlockAll",
      (body: Record<string, unknown>) => ({ ...body, networkBlockAll: false }),
      /networkBlockAll is false, not true|networkBlockAll is empty, not true/,
    ],
    ["public", (body: Record<string, unknown>) => ({ ...body, public: true }), /public is true, not/],
    [
      "a label",
      (body: Record<string, unknown>) => ({ ...body, labels: { ambit: "sandbox" } }),
      /the label ambit-deployment is empty/,
    ],
  ])("is deleted if the platform reports another %s", async (_what, rewrite, complaint) => {
    const daytona = loopback();
    const proxy = await rewritingProxy(daytona.apiUrl, rewrite);
    onTestFinished(() => proxy.close());
    const backend = await backendFor(daytona, { apiUrl: proxy.url });
    await expect(backend.open(specOf(), scopeOf())).rejects.toThrow(complaint);
    await expectNothingLeft(daytona);
  });

  it("needs no time to live if the platform has none: the log reports that", async () => {
    const daytona = loopback();
    const proxy = await rewritingProxy(daytona.apiUrl, (body) => ({ ...body, autoDestroyAt: undefined }));
    onTestFinished(() => proxy.close());
    const { log, lines } = logged();
    const sandbox = await open(await backendFor(daytona, { apiUrl: proxy.url }), { log });
    expect(sandbox.evidence["daytona.timeToLive"]).toMatch(/^none: .* 15 minutes after/);
    expect(lines.join()).toContain("gives no sandbox a time to live");
  });

  it.each([408, 502])("isn't failed by one response of %i to the check from inside", async (status) => {
    const daytona = loopback();
    daytona.faults.answer({ method: "POST", path: /\/process\/execute$/, status });
    const sandbox = await open(await backendFor(daytona));
    expect(sandbox.evidence["daytona.tried"]).toMatch(/none was reached/);
  });

  it("is reported as a failed sandbox, whatever the check from inside finds", async () => {
    const daytona = loopback();
    const node = "/bin/echo";
    const opening = (await backendFor(daytona, { bridge: { node } })).open(specOf(), scopeOf());
    await expect(opening).rejects.toBeInstanceOf(SandboxFailed);
    await expectNothingLeft(daytona);
  });

  it("reports limits that are changed while it is open", async () => {
    const daytona = loopback();
    let changed = false;
    const proxy = await rewritingProxy(daytona.apiUrl, (body) =>
      changed ? { ...body, networkBlockAll: false } : body,
    );
    onTestFinished(() => proxy.close());
    const backend = await backendFor(daytona, { apiUrl: proxy.url, watchSeconds: 1 });
    const failures: string[] = [];
    await open(backend, { onFailure: ({ message }) => failures.push(message) });
    changed = true;
    await expect.poll(() => failures, { timeout: 10_000 }).toHaveLength(1);
    expect(failures[0]).toMatch(/limits were changed: networkBlockAll/);
  });
});

describe("a lost response", () => {
  it("is recovered: one sandbox, found by its name", async () => {
    const daytona = loopback();
    daytona.faults.answer({ method: "POST", path: "/api/sandbox", status: "cut", afterwards: true });
    const before = daytona.requests().length;
    const sandbox = await open(await backendFor(daytona));
    expect(await printed(sandbox, "echo here")).toBe("here\n");
    const creates = daytona
      .requests()
      .slice(before)
      .filter(({ method, url }) => method === "POST" && url === "/api/sandbox");
    expect(creates.map(({ status }) => status)).toEqual([0, 409]);
  });

  it("doesn't use another owner's sandbox of that name", async () => {
    const daytona = loopback();
    const spec = specOf();
    const body = JSON.stringify({ name: `ambit-${spec.id}`, labels: { ambit: "sandbox" } });
    const headers = { authorization: `Bearer ${daytona.apiKey}`, "content-type": "application/json" };
    const made = await fetch(`${daytona.apiUrl}/sandbox`, { method: "POST", headers, body });
    expect(made.ok).toBe(true);
    await expect((await backendFor(daytona)).open(spec, scopeOf())).rejects.toThrow(
      /doesn't belong to this session/,
    );
    const still = daytona
      .sandboxes()
      .filter(({ name, state }) => name === `ambit-${spec.id}` && state === "started");
    expect(still).toHaveLength(1);
    await fetch(`${daytona.apiUrl}/sandbox/ambit-${spec.id}`, { method: "DELETE", headers });
    await expectNothingLeft(daytona);
  });
});

describe("failures of the platform", () => {
  it("are retried after the time that the platform requests", async () => {
    const daytona = loopback();
    daytona.faults.answer({ method: "POST", path: "/api/sandbox", status: 429, times: 1 });
    expect(await printed(await open(await backendFor(daytona)), "echo here")).toBe("here\n");
  });

  it.each([
    [401, undefined, /401.*the key is wrong or has expired/],
    [403, "Forbidden resource", /403.*give the key the permissions/],
    [403, "Organization quota exceeded: total memory", /delete sandboxes, or raise/],
    [
      400,
      "Network access is restricted and cannot be overridden at the sandbox level",
      /may not restrict a sandbox's network/,
    ],
    [404, "Snapshot root not found", /404, Snapshot root not found.*check sandbox-daytona's snapshot/],
  ])("%s %s is reported, tried once, and leaves nothing", async (status, message, text) => {
    const daytona = loopback();
    const fault = { method: "POST", path: "/api/sandbox", status, times: 9 };
    daytona.faults.answer(message === undefined ? fault : { ...fault, message });
    const before = daytona.requests().length;
    const backend = await backendFor(daytona);
    await expect(backend.open(specOf(), scopeOf())).rejects.toThrow(text);
    const creates = daytona
      .requests()
      .slice(before)
      .filter(({ method, url }) => method === "POST" && url === "/api/sandbox");
    expect(creates).toHaveLength(1);
    daytona.faults.clear();
    await expectNothingLeft(daytona);
  });

  it.each(["never_starts", "error", "build_failed"] as const)("%s is abandoned and deleted", async (fate) => {
    const daytona = loopback();
    daytona.faults.nextSandbox(fate);
    const backend = await backendFor(daytona, { createTimeoutMs: 1_500 });
    const secrets = [{ name: "KEY", value: "v", hosts: ["name.example.test"] }];
    const opening = backend.open(specOf({ boundary: listing("name.example.test"), secrets }), scopeOf());
    await expect(opening).rejects.toThrow(/creating a sandbox failed.*createTimeoutMs/s);
    await expectNothingLeft(daytona);
  });

  it.each([
    ["stops", (name: string) => loopback().faults.stop(name)],
    ["crashes", (name: string) => loopback().faults.crash(name)],
  ])("a sandbox that %s fails its run", async (_what, fault) => {
    const daytona = loopback();
    const failures: string[] = [];
    const spec = specOf({ onFailure: ({ message }) => failures.push(message) });
    const sandbox = await (await backendFor(daytona, { watchSeconds: 1 })).open(spec, scopeOf());
    await fault(`ambit-${spec.id}`);
    await expect.poll(() => failures.length, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(failures[0]).toMatch(/Daytona: the sandbox (is (stopp|error|destroy)|was deleted)/);
    await sandbox.close();
    await expectNothingLeft(daytona);
  });

  it("an aborted opening leaves nothing", async () => {
    const daytona = loopback();
    daytona.faults.nextSandbox("never_starts");
    const stop = new AbortController();
    const reason = new Error("given up");
    const opening = (await backendFor(daytona)).open(specOf(), scopeOf(stop.signal));
    const rejection = expect(opening).rejects.toThrow("given up");
    await expect.poll(() => daytona.sandboxes().some(({ state }) => state === "creating")).toBe(true);
    stop.abort(reason);
    await rejection;
    await expectNothingLeft(daytona);
  });

  it("none of it shows the key", async () => {
    const daytona = loopback();
    const { log, lines } = logged();
    daytona.faults.expireKey();
    const failure = await (await backendFor(daytona)).open(specOf({ log }), scopeOf()).then(
      () => undefined,
      (error: unknown) => error,
    );
    await expect.poll(() => lines.length).toBeGreaterThan(0);
    const shown = [lines.join()];
    for (let error: unknown = failure; error instanceof Error; error = error.cause)
      shown.push(String(error.stack));
    expect(shown.length).toBeGreaterThan(2);
    expect(shown.join()).not.toContain(daytona.apiKey);
    daytona.faults.renewKey();
  });
});
