// needs: jail, git
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { demoAgentEntry } from "@ambit/agent-demo";
import { startModelServer } from "@ambit/model-server";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ambitCommand } from "../support/ambit.js";
import { choosing, type EditorOptions, TestEditor } from "../support/editor.js";
import { processes } from "../support/processes.js";

/** As root, a session has a user of its own, who may not write the folder: the editor is an ordinary user's. */
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: 12_345, gid: 12_345 } : undefined;

let top: string;
let env: Record<string, string>;
let editor: TestEditor;
/** Of the editor, for the tests that share it. */
let folder: string;
let folders = 0;

beforeAll(async () => {
  top = mkdtempSync(join(tmpdir(), "ambit-e2e-acp-"));
  chmodSync(top, 0o755);
  const home = join(top, "home");
  mkdirSync(home);
  ownedByUser(top, home);
  env = { HOME: home, XDG_STATE_HOME: join(home, "state"), XDG_CACHE_HOME: join(home, "cache") };
  folder = newFolder();
  editor = start(["--agent", "demo"]);
  await editor.initialize();
}, 60_000);

afterAll(async () => {
  await editor?.leave();
  rmSync(top, { recursive: true, force: true });
});

function ownedByUser(...paths: readonly string[]): void {
  if (user === undefined) return;
  for (const path of paths) chownSync(path, user.uid, user.gid);
}

function newFolder(): string {
  folders += 1;
  const made = join(top, `project-${folders}`);
  mkdirSync(made);
  writeFileSync(join(made, "notes.txt"), "one\n");
  ownedByUser(made, join(made, "notes.txt"));
  return made;
}

function start(args: readonly string[], more: Partial<EditorOptions> = {}): TestEditor {
  return new TestEditor({ command: [...ambitCommand, "acp", ...args], cwd: top, env, user, ...more });
}

/** The same, ended with the test. */
async function started(...args: Parameters<typeof start>): Promise<TestEditor> {
  const other = start(...args);
  onTestFinished(async () => void (await other.leave()));
  await other.initialize();
  return other;
}

async function session(cwd = folder): Promise<string> {
  return (await editor.newSession(cwd)).sessionId;
}

describe("ambit acp", { timeout: 60_000 }, () => {
  it("works in the editor's folder, and shows what it does", async () => {
    const id = await session();
    const image = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" } as const;
    const link = {
      type: "resource_link",
      name: "notes.txt",
      uri: pathToFileURL(join(folder, "notes.txt")).href,
    } as const;
    const script = "say hi\nthink hm\nplan look; do\nattachments\nimage\nwrite notes.txt two\nrun pwd";
    const { stopReason, usage } = await editor.prompt(id, script, image, link);
    expect(stopReason).toBe("end_turn");
    expect(usage?.totalTokens).toBeGreaterThan(0);
    expect(editor.said(id)).toContain("hi");
    expect(editor.said(id)).toContain("image/png");
    expect(editor.said(id)).toContain("<image>");
    expect(editor.of(id, "agent_thought_chunk")).toMatchObject([{ content: { text: "hm" } }]);
    expect(editor.of(id, "plan")[0]?.entries).toMatchObject([{ content: "look" }, { content: "do" }]);
    expect(editor.of(id, "tool_call")).toMatchObject([
      { title: "write notes.txt", kind: "edit" },
      { title: "pwd", kind: "execute" },
    ]);
    expect(editor.of(id, "tool_call_update").filter(({ status }) => status === "completed")).toMatchObject([
      { content: [{ type: "diff", path: join(folder, "notes.txt"), oldText: "one\n", newText: "two" }] },
      { content: [{ content: { text: "/workspace\n" } }] },
    ]);
    expect(readFileSync(join(folder, "notes.txt"), "utf8")).toBe("two");
  });

  it("asks the editor's user, once and for the session", async () => {
    const id = await session();
    const asked = () => editor.questions.filter(({ sessionId }) => sessionId === id);
    editor.answer = choosing("reject");
    await editor.prompt(id, "write denied.txt x");
    expect(asked()).toMatchObject([
      {
        toolCall: {
          title: "write denied.txt",
          kind: "edit",
          locations: [{ path: join(folder, "denied.txt") }],
        },
        options: [{ kind: "allow_once" }, { kind: "allow_always" }, { kind: "reject_once" }],
      },
    ]);
    expect(editor.of(id, "tool_call_update").at(-1)).toMatchObject({ status: "failed" });
    expect(existsSync(join(folder, "denied.txt"))).toBe(false);
    editor.answer = choosing("allow_always");
    await editor.prompt(id, "write a.txt a\nwrite b.txt b");
    editor.answer = choosing("reject");
    await editor.prompt(id, "write c.txt c\nrun touch d.txt");
    // The run is another tool.
    expect(asked().slice(1)).toMatchObject([{ toolCall: { name: "write" } }, { toolCall: { name: "run" } }]);
    expect(["a.txt", "b.txt", "c.txt", "d.txt"].map((name) => existsSync(join(folder, name)))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    editor.answer = choosing("allow");
  });

  it("asks as its mode says", async () => {
    const { sessionId: id, modes } = await editor.newSession(folder);
    expect(modes?.currentModeId).toBe("allow_reads");
    const count = () => editor.questions.filter(({ sessionId }) => sessionId === id).length;
    await editor.agent.request("session/set_mode", { sessionId: id, modeId: "allow" });
    await editor.prompt(id, "write free.txt x");
    expect(count()).toBe(0);
    await editor.agent.request("session/set_mode", { sessionId: id, modeId: "ask" });
    await editor.prompt(id, "read free.txt");
    expect(count()).toBe(1);
    await expect(
      editor.agent.request("session/set_mode", { sessionId: id, modeId: "root" }),
    ).rejects.toMatchObject({ message: expect.stringContaining("one of allow_reads, ask, allow") });
  });

  it("cancels a question, and a command that runs", async () => {
    const id = await session();
    const withdrawn = Promise.withResolvers<void>();
    editor.answer = (_asked, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          withdrawn.resolve();
          resolve({ outcome: { outcome: "cancelled" } });
        });
        void editor.agent.notify("session/cancel", { sessionId: id });
      });
    expect(await editor.prompt(id, "run touch no.txt")).toMatchObject({ stopReason: "cancelled" });
    await withdrawn.promise;
    expect(existsSync(join(folder, "no.txt"))).toBe(false);
    editor.answer = async () => {
      queueMicrotask(() => void editor.agent.notify("session/cancel", { sessionId: id }));
      return { outcome: { outcome: "selected", optionId: "allow" } };
    };
    expect(await editor.prompt(id, "run sleep 1000")).toMatchObject({ stopReason: "cancelled" });
    editor.answer = choosing("allow");
    expect(await editor.prompt(id, "say again")).toMatchObject({ stopReason: "end_turn" });
    expect(editor.said(id)).toContain("again");
  });

  it("ends a failed turn with its reason, and goes on", async () => {
    const id = await session();
    await editor.prompt(id, "say first");
    await expect(editor.prompt(id, "crash boom")).rejects.toMatchObject({
      message: expect.stringContaining("the demo agent ended with exit code 1"),
      data: { code: "harness_failed" },
    });
    await expect(editor.prompt(id, "fail no luck")).rejects.toMatchObject({
      message: expect.stringContaining("no luck"),
    });
    expect(await editor.prompt(id, "say third")).toMatchObject({ stopReason: "end_turn" });
    expect(editor.said(id)).toContain("third");
  });

  it("refuses what it can't guarantee, and names each reason", async () => {
    const server = { type: "http", name: "my tools", url: "https://192.0.2.1/mcp", headers: [] } as const;
    await expect(editor.newSession(folder, { mcpServers: [server] })).rejects.toMatchObject({
      message: expect.stringMatching(
        /^Ambit refuses to start the agent:\n- .*my_tools.*network\.deny: .+: .+/,
      ),
    });
    const old = { type: "sse", name: "old", url: "http://192.0.2.1/sse", headers: [] } as const;
    await expect(editor.newSession(folder, { mcpServers: [old] })).rejects.toMatchObject({
      message: expect.stringContaining("'old' (sse)"),
    });
    await expect(editor.newSession("relative")).rejects.toMatchObject({
      message: expect.stringContaining("cwd"),
    });
    await expect(editor.newSession(join(top, "missing"))).rejects.toMatchObject({
      message: expect.stringContaining("can't be read"),
    });
    await expect(editor.prompt("acp_none", "say hi")).rejects.toMatchObject({
      message: expect.stringContaining("no open session"),
    });
  });

  it("keeps two sessions apart, and runs one at a time in a folder", async () => {
    const other = newFolder();
    const [here, there, sibling] = [await session(), await session(other), await session(other)];
    editor.answer = choosing("allow");
    await Promise.all([
      editor.prompt(here, "write who.txt here"),
      editor.prompt(there, "write who.txt there\nread who.txt"),
      editor.prompt(sibling, "write who.txt sibling\nread who.txt"),
    ]);
    expect(readFileSync(join(folder, "who.txt"), "utf8")).toBe("here");
    const reads = (id: string) =>
      editor
        .of(id, "tool_call_update")
        .map(({ rawOutput }) => rawOutput)
        .at(-1);
    expect([reads(there), reads(sibling)]).toEqual(["there", "sibling"]);
  });

  it("leaves nothing running in the folder after a turn", async () => {
    const id = await session();
    const marker = "ambit-e2e-left-running";
    const running = () => processes().some(({ command }) => command.includes(`sh -c : ${marker}`));
    let wasRunning = false;
    editor.answer = async (asked, signal) => {
      wasRunning ||= running();
      return choosing("allow")(asked, signal);
    };
    const left = `setsid sh -c ': ${marker}; touch /tmp/up; sleep 1000; git init sub' >/dev/null 2>&1 &`;
    await editor.prompt(id, `run ${left} until [ -e /tmp/up ]; do sleep 0.01; done\nrun true`);
    editor.answer = choosing("allow");
    // Control: while the turn waits for its second answer, it runs.
    expect([wasRunning, running()]).toEqual([true, false]);
    await editor.prompt(id, "run git init -q nested");
    expect(editor.said(id)).toMatch(/nested\/\.git\.ambit-disarmed-\w+: renamed/);
    expect(existsSync(join(folder, "nested/.git"))).toBe(false);
  });

  it("shows a session again in a new process, to the folder that it belongs to", async () => {
    const own = newFolder();
    const id = await session(own);
    // What can't be loaded doesn't end the session.
    await expect(
      editor.agent.request("session/load", { sessionId: id, cwd: own, mcpServers: [] }),
    ).rejects.toThrow("There is no session");
    await editor.prompt(id, "say remember me\nwrite kept.txt x");
    await editor.agent.request("session/close", { sessionId: id });
    const later = await started(["--agent", "demo"]);
    await expect(
      later.agent.request("session/load", { sessionId: id, cwd: folder, mcpServers: [] }),
    ).rejects.toMatchObject({ message: expect.stringContaining("There is no session") });
    const { sessions } = await later.agent.request("session/list", { cwd: own });
    expect(sessions).toMatchObject([{ sessionId: id, title: expect.stringContaining("say remember me") }]);
    await later.agent.request("session/load", { sessionId: id, cwd: own, mcpServers: [] });
    expect(later.of(id, "user_message_chunk")).toMatchObject([
      { content: { text: "say remember me\nwrite kept.txt x" } },
    ]);
    expect(later.said(id)).toBe("remember me");
    expect(later.of(id, "tool_call")).toMatchObject([{ title: "write kept.txt" }]);
    // The agent is new, and is told what was said.
    await later.prompt(id, "say back");
    expect(later.said(id)).toContain("back");
    // It leaves in the middle of a turn.
    const asked = Promise.withResolvers<void>();
    later.answer = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const left = expect(later.prompt(id, "run touch no.txt")).rejects.toThrow("closed");
    await asked.promise;
    expect(await later.leave()).toBe(0);
    await left;
    await editor.agent.request("session/load", { sessionId: id, cwd: own, mcpServers: [] });
    expect(editor.of(id, "user_message_chunk").at(-1)).toMatchObject({
      content: { text: "run touch no.txt" },
    });
    expect(existsSync(join(own, "no.txt"))).toBe(false);
    await editor.agent.request("session/delete", { sessionId: id });
    expect((await editor.agent.request("session/list", { cwd: own })).sessions).toEqual([]);
  });

  it("works for two editors on one data folder at once, each with sessions of its own", async () => {
    const other = await started(["--agent", "demo"]);
    const editors = [editor, other];
    const turns = await Promise.all(
      editors.map(async (each) => {
        const own = newFolder();
        const { sessionId: id } = await each.newSession(own);
        return { each, own, id };
      }),
    );
    const asked = editors.map(() => Promise.withResolvers<void>());
    editors.forEach((each, index) => {
      each.answer = async (question, signal) => {
        asked[index]?.resolve();
        // Both turns are under way.
        await Promise.all(asked.map(({ promise }) => promise));
        return choosing("allow")(question, signal);
      };
    });
    const ends = turns.map(({ each, id }, index) =>
      each.prompt(id, `say turn ${index}\nwrite who.txt ${index}`),
    );
    expect(await Promise.all(ends)).toMatchObject([{ stopReason: "end_turn" }, { stopReason: "end_turn" }]);
    editor.answer = choosing("allow");
    for (const [index, { each, own, id }] of turns.entries()) {
      expect(readFileSync(join(own, "who.txt"), "utf8")).toBe(String(index));
      expect(each.said(id)).toBe(`turn ${index}`);
      for (const reader of editors)
        expect((await reader.agent.request("session/list", { cwd: own })).sessions).toMatchObject([
          { sessionId: id, title: expect.stringContaining(`say turn ${index}`) },
        ]);
    }
  });

  it("has what was said and done in a turn whose process was killed", async () => {
    const own = newFolder();
    const killed = start(["--agent", "demo"]);
    await killed.initialize();
    const { sessionId: id } = await killed.newSession(own);
    await killed.prompt(id, "say first\nread notes.txt");
    const asked = Promise.withResolvers<void>();
    killed.answer = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const left = expect(killed.prompt(id, "say second\nread notes.txt\nwrite no.txt x")).rejects.toThrow();
    await asked.promise;
    killed.child.kill("SIGKILL");
    await killed.exit;
    await left;
    const later = await started(["--agent", "demo"]);
    await later.agent.request("session/load", { sessionId: id, cwd: own, mcpServers: [] });
    expect(later.of(id, "user_message_chunk")).toHaveLength(2);
    expect(later.said(id)).toBe("firstsecond");
    expect(later.of(id, "tool_call").map(({ title }) => title)).toEqual([
      "read notes.txt",
      "read notes.txt",
      "write no.txt",
    ]);
    expect(later.of(id, "tool_call_update").map(({ status }) => status)).toEqual([
      "completed",
      "completed",
      "failed",
    ]);
    // The new agent got the past with its first prompt.
    await later.prompt(id, "say third");
    await later.prompt(id, "recall");
    expect(later.said(id)).toMatch(/say first.*say second.*say third/s);
  });

  it("keeps the agent's memory and the folder where the boundary changes between turns", async () => {
    const own = newFolder();
    const id = await session(own);
    await editor.prompt(id, "say remember");
    const before = statSync(join(own, "notes.txt"));
    // From now on, the folder is a repository, whose hooks the agent must not write.
    execFileSync("git", ["init", "-q", own], { env: { PATH: process.env.PATH, HOME: top }, ...user });
    await editor.prompt(id, "recall\nrun ! touch .git/made");
    expect(editor.said(id)).toContain('["say remember"]');
    expect(existsSync(join(own, ".git/made"))).toBe(false);
    const { ino, mtimeMs, ctimeMs } = statSync(join(own, "notes.txt"));
    expect({ ino, mtimeMs, ctimeMs }).toEqual({
      ino: before.ino,
      mtimeMs: before.mtimeMs,
      ctimeMs: before.ctimeMs,
    });
  });

  it("ends a turn whose question waits too long, and takes what isn't saved yet", async () => {
    const own = newFolder();
    const config = join(top, "impatient.json");
    const request = { interactions: { waitMs: 1 } };
    writeFileSync(
      config,
      JSON.stringify({
        extends: "defaults",
        plugins: [{ use: "@ambit/door-acp", config: { request } }],
      }),
    );
    const impatient = await started(["--agent", "demo"], {
      command: [...ambitCommand, "--config", config, "acp", "--agent", "demo"],
      capabilities: { fs: { readTextFile: true } },
      unsaved: { [join(own, "notes.txt")]: "unsaved" },
    });
    impatient.answer = (_asked, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ outcome: { outcome: "cancelled" } }));
      });
    const { sessionId: id } = await impatient.newSession(own);
    expect(await impatient.prompt(id, "run touch late.txt")).toMatchObject({ stopReason: "end_turn" });
    expect(impatient.said(id)).toContain("no answer in time");
    expect(existsSync(join(own, "late.txt"))).toBe(false);
    const link = {
      type: "resource_link",
      name: "notes.txt",
      uri: pathToFileURL(join(own, "notes.txt")).href,
    } as const;
    await impatient.prompt(id, "attachments", link);
    expect(impatient.said(id)).toContain("resource file:///workspace/notes.txt");
  });

  it("confines an agent that without it writes outside of the folder", async () => {
    const own = newFolder();
    const outside = [join(top, "outside.txt"), join(top, "home", ".profile")];
    const attack = `write ../outside.txt x\nwrite ${join(top, "home", ".profile")} x`;
    const clean = () => {
      for (const path of outside) rmSync(path, { force: true });
    };
    onTestFinished(clean);
    // Control: the same agent, which the editor starts itself.
    const bare = new TestEditor({ command: [process.execPath, demoAgentEntry], cwd: own, env, user });
    await bare.initialize();
    await bare.prompt((await bare.newSession(own)).sessionId, attack);
    await bare.leave();
    expect(outside.map((path) => existsSync(path))).toEqual([true, true]);
    clean();
    const id = await session(own);
    await editor.agent.request("session/set_mode", { sessionId: id, modeId: "allow" });
    await editor.prompt(id, attack);
    expect(outside.map((path) => existsSync(path))).toEqual([false, false]);
    // The other one was written into scratch of its own.
    expect(editor.of(id, "tool_call_update").filter(({ status }) => status === "failed")).toHaveLength(1);
  });

  it("lets Gemini CLI edit a file of the folder", { timeout: 120_000 }, async () => {
    await using model = await startModelServer({ expectedKey: "key-of-the-person" });
    const own = newFolder();
    const keys = { GEMINI_API_KEY: "key-of-the-person", GOOGLE_GEMINI_BASE_URL: model.url };
    const gemini = await started(["--agent", "gemini", "--secrets", "hidden", "--permissions", "allow"], {
      env: { ...env, ...keys },
    });
    const { sessionId: id } = await gemini.newSession(own);
    const edit = '[[call write_file {"file_path":"/workspace/notes.txt","content":"mended"}]] [[say Done.]]';
    const first = await gemini.prompt(id, edit);
    expect([first.stopReason, gemini.said(id)], gemini.log).toEqual([
      "end_turn",
      expect.stringContaining("Done."),
    ]);
    expect(readFileSync(join(own, "notes.txt"), "utf8")).toBe("mended");
    expect(gemini.of(id, "tool_call").at(0)).toMatchObject({ kind: "edit" });
    expect(await gemini.prompt(id, "[[say Second turn.]]")).toMatchObject({ stopReason: "end_turn" });
    expect(readdirSync(own).sort()).toEqual(["notes.txt"]);
  });
});
