// needs: jail
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  allOf,
  demo,
  emptyFolder,
  ndjson,
  readUntil,
  recordsOf,
  type Server,
  serve,
} from "../support/ambit.js";

const confined = { sandboxPermission: { network: "off", filesystem: "workspace" } };

/** What the agent said, or why the run failed. */
async function turn(server: Server, request: object, headers: Record<string, string> = {}) {
  const response = await server.post("/run", { ...confined, ...request }, headers);
  const result = JSON.parse(await response.text());
  return { result, said: String(result.output ?? result.error), receipt: result.receipt };
}

async function asJson(response: Promise<Response> | Response, status = 200) {
  const { status: given } = await response;
  const text = await (await response).text();
  expect([given, text]).toEqual([status, text]);
  return JSON.parse(text);
}

const take = (server: Server, session: string, headers: Record<string, string> = {}) =>
  server.post(`/sessions/${session}/snapshot`, "", headers);

const remove = (url: string) => fetch(url, { method: "DELETE" });

describe("snapshots of a session", { timeout: 120_000 }, () => {
  it("let two runs begin from one state; neither sees the other, and the original stays as it was", async () => {
    const server = await serve();
    const begun = demo(
      "write app.txt one",
      "run mkdir -p deep && ln -s ../app.txt deep/link && chmod 700 app.txt",
      "say begun",
    );
    expect((await turn(server, { ...begun, sessionId: "original" })).said).toBe("begun");
    const info = await asJson(take(server, "original"), 201);
    expect(info).toMatchObject({ sessionId: "original", sandbox: "local", skipped: 0 });
    expect(info.sha256).toMatch(/^[0-9a-f]{64}$/);

    for (const letter of ["a", "b"]) {
      const script = [
        `run cat deep/link; stat -c %a app.txt; ls`,
        `write app.txt ${letter}`,
        `write ${letter}.txt x`,
        "recall",
      ];
      const fork = await turn(server, { ...demo(...script), sessionId: letter, fork: { snapshot: info.id } });
      expect(fork.result, server.log()).toMatchObject({ ok: true });
      const { sha256, bytes, entries } = info;
      expect(fork.receipt.fork).toEqual({ snapshot: info.id, sha256, bytes, entries });
      // The agent goes on with the conversation, which it had stored in its home.
      expect(fork.receipt.session.history).toBe("loaded");
      expect(JSON.parse(fork.said)).toEqual([begun.messages[0]?.content]);
      const [first] = fork.result.events.filter(({ type }: { type: string }) => type === "tool_result");
      expect(JSON.stringify(first)).toMatch(/one.*700.*app\.txt.*deep/);
    }
    const files = async (sessionId: string) => {
      const { result } = await turn(server, { ...demo("run cat app.txt; echo; ls", "say x"), sessionId });
      return result.events.find(({ type }: { type: string }) => type === "tool_result").output;
    };
    expect(JSON.stringify(await files("a"))).toMatch(/"a\\*n.*a\.txt/);
    expect(JSON.stringify(await files("a"))).not.toContain("b.txt");
    expect(JSON.stringify(await files("b"))).not.toContain("a.txt");
    const original = JSON.stringify(await files("original"));
    expect(original).toContain("one");
    expect(original).not.toMatch(/[ab]\.txt/);

    expect((await asJson(fetch(`${server.url}/snapshots`))).snapshots).toEqual([info]);
    expect(await asJson(fetch(`${server.url}/snapshots/${info.id}`))).toEqual(info);
    await asJson(remove(`${server.url}/snapshots/${info.id}`));
    expect((await fetch(`${server.url}/snapshots/${info.id}`)).status).toBe(404);
    const gone = await turn(server, { ...demo("say x"), fork: { snapshot: info.id } });
    expect(gone.result.failure).toMatchObject({ code: "not_found" });
  });

  it("aren't needed to fork an idle session; one in use is refused", async () => {
    const server = await serve();
    await turn(server, { ...demo("write app.txt one", "say begun"), sessionId: "idle" });
    const fork = await turn(server, { ...demo("run cat app.txt", "recall"), fork: { session: "idle" } });
    expect(fork.receipt.fork).toMatchObject({ session: "idle", entries: expect.any(Number) });
    expect(JSON.stringify(fork.result.events)).toContain("one");
    expect(fork.receipt.session.history).toBe("loaded");

    const writing = { ...confined, ...demo("write busy.txt x", "sleep 60000"), sessionId: "idle" };
    const busy = recordsOf(await server.post("/run", writing, ndjson));
    // Its agent acts: it has the session. To ask for snapshots until then would make them.
    await readUntil(busy, (record) => record.kind === "event" && record.event.type === "tool_call");
    const response = await take(server, "idle");
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ failure: { code: "session_in_use", retryable: true } });
    const refused = await turn(server, { ...demo("say x"), fork: { session: "idle" } });
    expect(refused.result.failure).toMatchObject({ code: "session_in_use" });
    await asJson(server.post("/kill", { sessionId: "idle" }));
    await allOf(busy);

    for (const [fork, field, more] of [
      [{ session: "a", snapshot: "0".repeat(32) }, "fork", {}],
      [{}, "fork", {}],
      [{ snapshot: "../x" }, "fork.snapshot", {}],
      [{ session: "mine" }, "fork.session", { sessionId: "mine" }],
      [
        { session: "a" },
        "fork",
        { workspace: { sources: [{ type: "files", files: [{ path: "a", content: "" }] }] } },
      ],
      [{ session: "a" }, "fork", { sandboxPermission: { network: "off", filesystem: "readonly" } }],
    ] as const) {
      const { result } = await turn(server, { ...demo("say x"), fork, ...more });
      expect(result.failure, field).toMatchObject({ code: "request_invalid", issues: [{ path: field }] });
    }
    const unknown = await turn(server, { ...demo("say x"), fork: { session: "unknown" } });
    expect(unknown.result.failure).toMatchObject({ code: "not_found" });
    expect((await take(server, "unknown")).status).toBe(404);
  });

  it("belong to their project", async () => {
    const folder = await emptyFolder();
    const hashed = (token: string) => `sha256:${createHash("sha256").update(token).digest("hex")}`;
    const tokens = ["one", "two"].map((name) => ({ token: hashed(name), project: name }));
    const config = join(folder, "config.json");
    writeFileSync(
      config,
      JSON.stringify({
        extends: "defaults",
        tokens,
        workspace: { maxSnapshotsPerProject: 1 },
        probes: { keepAcrossRestarts: true },
      }),
    );
    const server = await serve({ AMBIT_TOKEN: "operators" }, ["--config", config]);
    const [one, two] = ["one", "two"].map((name) => ({ authorization: `Bearer ${name}` }));
    await turn(server, { ...demo("write app.txt secret-of-one", "say begun"), sessionId: "s" }, one);
    const info = await asJson(take(server, "s", one), 201);
    // The control: its own project may.
    expect((await turn(server, { ...demo("say forked"), fork: { snapshot: info.id } }, one)).said).toBe(
      "forked",
    );
    for (const path of ["", "/archive"])
      expect((await fetch(`${server.url}/snapshots/${info.id}${path}`, { headers: two })).status).toBe(404);
    expect(
      (await fetch(`${server.url}/snapshots/${info.id}`, { method: "DELETE", headers: two })).status,
    ).toBe(404);
    expect((await take(server, "s", two)).status).toBe(404);
    expect((await asJson(fetch(`${server.url}/snapshots`, { headers: two }))).snapshots).toEqual([]);
    for (const fork of [{ snapshot: info.id }, { session: "s" }])
      expect((await turn(server, { ...demo("run cat app.txt"), fork }, two)).result.failure).toMatchObject({
        code: "not_found",
      });
    const other = await fetch(`${server.url}/snapshots?projectId=one`, { headers: two });
    expect(other.status).toBe(400);
    const operators = { authorization: "Bearer operators" };
    expect(
      (await asJson(fetch(`${server.url}/snapshots?projectId=one`, { headers: operators }))).snapshots,
    ).toEqual([info]);
    const more = await asJson(take(server, "s", one), 502);
    expect(more.failure).toMatchObject({ code: "snapshot_failed" });
    expect(more.error).toContain("maxSnapshotsPerProject");
  });

  it("go to another server as a file, and one that was changed or cut is refused", async () => {
    const [one, two] = [
      await serve(),
      await serve({
        AMBIT_BLOBS_FOLDER: await emptyFolder(),
        AMBIT_SQLITE_FILE: join(await emptyFolder(), "runs.sqlite"),
      }),
    ];
    await turn(one, { ...demo("write app.txt carried-over", "say begun"), sessionId: "s" });
    const info = await asJson(take(one, "s"), 201);
    const file = Buffer.from(await (await fetch(`${one.url}/snapshots/${info.id}/archive`)).arrayBuffer());
    const send = (body: Uint8Array) =>
      fetch(`${two.url}/snapshots`, { method: "POST", body: new Uint8Array(body) });
    const changed = Buffer.from(file);
    changed[changed.length - 20] = (changed[changed.length - 20] ?? 0) ^ 1;
    const newer = Buffer.from(file.toString("latin1").replace('"version":1', '"version":2'), "latin1");
    for (const broken of [
      changed,
      file.subarray(0, -1),
      Buffer.concat([file, Buffer.from("x")]),
      newer,
      Buffer.from("{}\n"),
      Buffer.alloc(0),
      Buffer.alloc(900_000, 65),
    ]) {
      const refused = await asJson(send(broken), 400);
      expect(refused.failure).toMatchObject({ code: "request_invalid" });
    }
    expect((await asJson(fetch(`${two.url}/snapshots`))).snapshots).toEqual([]);
    const imported = await asJson(send(file), 201);
    expect(imported).toMatchObject({ sha256: info.sha256, bytes: info.bytes, sessionId: "s" });
    expect(imported.id).not.toBe(info.id);
    const fork = await turn(two, { ...demo("run cat app.txt", "recall"), fork: { snapshot: imported.id } });
    expect(JSON.stringify(fork.result.events)).toContain("carried-over");
    expect(fork.receipt.session.history).toBe("loaded");
  });

  it("have no credential that stayed outside, and a fork hides those that earlier runs had", async () => {
    const blobs = await emptyFolder();
    const server = await serve({ AMBIT_BLOBS_FOLDER: blobs });
    const outside = "credential-that-stays-outside";
    const inside = "credential-that-the-agent-sees";
    const sandboxPermission = {
      network: { mode: "allowlist", allowlist: ["example.com"] },
      filesystem: "workspace",
    };
    const first = await turn(server, {
      ...demo("run env > env.txt", "say begun"),
      sessionId: "credentials",
      sandboxPermission,
      credentials: [{ name: "OUTSIDE_TOKEN", value: outside, hosts: ["example.com"], as: "bearer" }],
      sandboxCredentials: [{ binding: { kind: "environment", name: "INSIDE_TOKEN" }, value: inside }],
    });
    expect(first.said).toBe("begun");
    const info = await asJson(take(server, "credentials"), 201);
    const exported = await (await fetch(`${server.url}/snapshots/${info.id}/archive`)).text();
    const kept = readdirSync(blobs, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name)).toString("latin1"));
    expect(kept.length).toBeGreaterThanOrEqual(3);
    for (const text of [exported, ...kept]) expect(text).not.toContain(outside);
    // The control: the other one, which the agent could read, is in the file that it wrote.
    expect(exported).toContain(`INSIDE_TOKEN=${inside}`);
    const fork = await turn(server, {
      ...demo("run cat env.txt", "say forked"),
      sandboxPermission,
      fork: { snapshot: info.id },
    });
    expect(fork.said).toBe("forked");
    expect(JSON.stringify(fork.result.events)).toContain("INSIDE_TOKEN=");
    expect(JSON.stringify(fork.result.events)).not.toContain(inside);
  });
});
