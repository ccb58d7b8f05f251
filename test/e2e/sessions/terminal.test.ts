// needs: jail
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { AmbitClient, AmbitError, type RunRequest, type Terminal } from "@ambit/client";
import { unavailableReason } from "@ambit/docker-engine";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { allOf, emptyFolder, interrupt, type Server, serve, startTerminal } from "../support/ambit.js";
import { serveFromContainers } from "../support/backends/serve-from.js";
import { running } from "../support/processes.js";

const operatorToken = "the-operator's-token-which-is-long-enough";
const tenantToken = "ambit_of-a-tenant-that-is-long-enough";
const tenant = {
  token: `sha256:${createHash("sha256").update(tenantToken).digest("hex")}`,
  project: "other",
};

const turn = (...script: readonly string[]): RunRequest => ({
  harness: "demo",
  permissions: { default: "allow" },
  sandboxPermission: { network: "off", filesystem: "workspace" },
  interactions: { waitMs: 60_000 },
  messages: [{ role: "user", content: script.join("\n") }],
});

async function serveLocally(settings: object): Promise<Server> {
  const file = join(await emptyFolder(), "ambit.json");
  writeFileSync(file, JSON.stringify({ probes: { keepAcrossRestarts: true }, ...settings }));
  return await serve({ AMBIT_TOKEN: operatorToken }, ["--config", file]);
}

const operatorOf = ({ url }: Server) => new AmbitClient({ url, token: operatorToken, projectId: "acme" });

const failure = (error: unknown) =>
  error instanceof AmbitError ? `${error.status} ${error.code}: ${error.message}` : String(error);

/** Reads what a terminal prints. */
function watch(terminal: Terminal) {
  let printed = "";
  const decoder = new TextDecoder();
  const read = async () => {
    const output = terminal.output();
    for (;;) {
      const { value, done } = await output.next();
      if (done) return value;
      printed += decoder.decode(value, { stream: true });
    }
  };
  const ended = read();
  const until = async (text: RegExp) => {
    await expect.poll(() => printed, { timeout: 60_000 }).toMatch(text);
    return printed;
  };
  return {
    ended,
    /** Types a text, and waits until what is printed since matches. @returns that */
    type: async (text: string, answer: RegExp) => {
      printed = "";
      await terminal.write(text);
      return await until(answer);
    },
    /** What a command prints. */
    run: async (command: string) => {
      printed = "";
      await terminal.write(`${command}; echo "=$?="\r`);
      return await until(/=\d+=\r/);
    },
  };
}

/** Of a process that only this test starts. */
const marker = 1_000_000 + process.pid;

const places = [
  { sandbox: "local", missing: () => undefined, start: serveLocally },
  { sandbox: "runc", missing: () => unavailableReason("runc"), start: serveFromContainers },
];

describe.each(places)("a terminal in a session of $sandbox", ({ sandbox, missing, start }) => {
  it("is a shell with the session's boundary, which keeps runs out until it ends", async (context) => {
    const reason = missing();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const listener = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
    onTestFinished(() => void listener.close());
    await once(listener, "listening");
    const address = listener.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const server = await start({ server: { terminals: { enabled: true } } });
    const client = operatorOf(server);
    const session = `in-${sandbox}`;
    const asking = (...script: string[]) => ({ ...turn(...script), sessionId: session, sandbox });
    const agents = [
      "write a.txt one",
      "run echo the-login > ~/login && cat ~/login && pwd",
      "run env; echo ~",
    ];
    const first = JSON.stringify(await allOf(client.run(asking(...agents))));
    // The control: the agent has a login, and variables.
    expect(first).toMatch(/the-login.*GIT_TERMINAL_PROMPT/);
    const home = /HOME=([^\\]+)/.exec(first)?.[1] ?? "";

    const terminal = await client.openTerminal(session, { columns: 100, rows: 30 });
    const { type, run, ended } = watch(terminal);
    expect(await run("stty size; cat a.txt")).toMatch(/30 100\r\n.*one/s);
    await terminal.resize({ columns: 120, rows: 50 });
    expect(await run("stty size")).toContain("50 120");
    await type("sleep 86397\r", /sleep 86397\r\n/);
    await type(interrupt, /\^C/);
    expect(await run("true")).toContain("=0=");
    const environment = await run("env; cat /proc/*/environ | tr '\\0' '\\n'");
    expect(environment).toContain("TERM=xterm-256color");
    expect(environment).not.toContain("GIT_TERMINAL_PROMPT");
    expect(await run(`cat ${home}/login`)).toContain("=1=");
    const connect = `exec 3<>/dev/tcp/127.0.0.1/${port}`;
    expect(await run(`bash -c '${connect}'`)).toContain("=1=");
    // The control: it is there.
    expect(await execa("bash", ["-c", connect])).toMatchObject({ exitCode: 0 });

    expect(await client.openTerminal(session).catch(failure)).toMatch(
      /429 session_in_use: .* busy with a terminal of the operator: close it/,
    );
    expect(await allOf(client.run(asking("say hi"))).catch(failure)).toMatch("busy with a terminal");
    await run("echo two > a.txt");
    await run(`setsid sleep ${marker} & sleep 0`);
    // The control: the test sees it.
    expect(running(`sleep ${marker}`)).not.toEqual([]);
    terminal.close();
    expect(await ended).toEqual({ exitCode: null, reason: "its connection ended" });
    await expect.poll(() => running(`sleep ${marker}`), { timeout: 60_000 }).toEqual([]);

    const next = client.run({ ...asking("run cat a.txt ~/login"), whenBusy: "queue" });
    expect(JSON.stringify(await allOf(next))).toMatch(/two.*the-login/);
    expect(JSON.stringify(await next.result)).toMatch("the operator had a terminal, from ");
  }, 240_000);
});

describe("a terminal ends", () => {
  it("with its shell, its session and its server, each with its reason", async () => {
    const server = await serveLocally({ server: { terminals: { enabled: true } } });
    const client = operatorOf(server);
    await allOf(client.run({ ...turn("write a.txt one"), sessionId: "ends" }));
    const left = watch(await client.openTerminal("ends"));
    await left.type("exit 3\r", /exit/);
    expect(await left.ended).toMatchObject({ exitCode: 3 });
    const [project, url] = ["acme", server.url];
    const typed = startTerminal(["terminal", "ends", "--project", project, "--url", url], {
      AMBIT_TOKEN: operatorToken,
    });
    await typed.answer(/workspace \$ /, "printf '\\033]0;forged\\007shown'; exit 5");
    expect(await typed.exit).toBe(5);
    expect(typed.printed()).toContain("shown");
    expect(typed.printed().endsWith("\u001b[?25h\u001b[0m")).toBe(true);
    expect(typed.printed()).not.toContain("\u001b]0;");
    const closed = watch(await client.openTerminal("ends"));
    expect(await client.closeSession("ends")).toMatchObject({ ok: true, ended: true });
    expect(await closed.ended).toMatchObject({ exitCode: null, reason: "The session was ended." });
    expect(await client.openTerminal("ends").catch(failure)).toMatch("404 not_found");

    await allOf(client.run({ ...turn("write a.txt one"), sessionId: "ends" }));
    const drained = watch(await client.openTerminal("ends"));
    server.process.kill("SIGTERM");
    expect(await drained.ended).toMatchObject({ exitCode: null, reason: "The runner is shutting down." });
    expect(await server.exit).toBe(0);
  }, 120_000);

  it("when nothing is typed, and is neither another's, nor a page's, nor a busy or unconfined session's", async () => {
    const server = await serveLocally({
      server: { terminals: { enabled: true, idleTimeoutMs: 1_000 } },
      tokens: [tenant],
      extends: "defaults",
      plugins: [{ use: "@ambit/sandbox-local", config: { unconfined: "prefer" } }],
    });
    const client = operatorOf(server);
    await allOf(client.run({ ...turn("write a.txt one"), sessionId: "idle" }));
    const reason = "Nothing was typed for 1 s (server.terminals.idleTimeoutMs).";
    const idle = await client.openTerminal("idle");
    const { ended } = watch(idle);
    const others = new AmbitClient({ url: server.url, token: tenantToken });
    const into = `/sessions/idle/terminals/${idle.id}`;
    const type = (token: string, query = "") =>
      server.post(`${into}${query}`, { input: "x" }, { authorization: `Bearer ${token}` });
    expect((await type(tenantToken)).status).toBe(404);
    // The control: its own user may.
    expect((await type(operatorToken, "?projectId=acme")).status).toBe(200);
    expect(await ended).toMatchObject({ exitCode: null, reason });

    expect(await others.openTerminal("idle").catch(failure)).toMatch("404 not_found");
    const { token } = await client.makeToken({ sessionId: "idle", may: ["read", "answer"] });
    const page = new AmbitClient({ url: server.url, token });
    expect(await page.openTerminal("idle").catch(failure)).toMatch("403 unauthorized");

    const open = { ...turn("say hi"), sessionId: "open", sandboxPermission: { network: "on" } } as const;
    await allOf(client.run(open));
    expect(await client.openTerminal("open").catch(failure)).toMatch(
      "sessionId: is a session without a boundary",
    );
    const asking = client.run({ ...turn("ask go on"), sessionId: "idle", permissions: { default: "ask" } });
    for await (const event of asking) if (event.type === "interaction_request") break;
    expect(await client.openTerminal("idle").catch(failure)).toMatch("429 session_in_use");
    await client.closeSession("idle");
  }, 120_000);
});
