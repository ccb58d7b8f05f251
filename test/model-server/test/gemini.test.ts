import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ModelServer, startModelServer } from "../src/index.js";

const require = createRequire(import.meta.url);
const GEMINI = join(dirname(require.resolve("@google/gemini-cli/package.json")), "bundle", "gemini.js");
const KEY = "key-of-the-test";

/** The real agent: what it accepts here, it accepts from its provider. */
describe("Gemini CLI accepts the server as its provider", () => {
  let server: ModelServer;
  let folder: string;

  beforeAll(async () => {
    server = await startModelServer({ expectedKey: KEY });
    folder = await mkdtemp(join(tmpdir(), "model-server-gemini-"));
    await mkdir(join(folder, "home", ".gemini"), { recursive: true });
    await mkdir(join(folder, "work"));
    await writeFile(
      join(folder, "home", ".gemini", "settings.json"),
      JSON.stringify({
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { enableAutoUpdate: false, maxAttempts: 1 },
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        // With `auto` it sends a routing request before every turn, which expects JSON.
        model: { name: "gemini-2.5-flash" },
      }),
    );
  });

  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("in a turn with text, then in a turn with a shell call", async () => {
    const child = spawn(process.execPath, [GEMINI, "--acp"], {
      cwd: join(folder, "work"),
      stdio: ["pipe", "pipe", "ignore"],
      env: {
        PATH: process.env.PATH,
        HOME: join(folder, "home"),
        GEMINI_API_KEY: KEY,
        GOOGLE_GEMINI_BASE_URL: server.url,
        GEMINI_CLI_NO_RELAUNCH: "true",
        // It writes a report of each failed request there and doesn't remove it.
        TMPDIR: folder,
      },
    });
    const exited = once(child, "exit");
    // After the child has exited, writing is an error event of the pipe; the pending request reports it.
    child.stdin.on("error", () => undefined);
    let text = "";
    const connection = acp
      .client({ name: "model-server-test" })
      .onNotification("session/update", ({ params }) => {
        const { update } = params;
        if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
          text += update.content.text;
        }
      })
      .onRequest("session/request_permission", ({ params }) => {
        const option = params.options.find(({ kind }) => kind === "allow_once");
        return option === undefined
          ? { outcome: { outcome: "cancelled" } }
          : { outcome: { outcome: "selected", optionId: option.optionId } };
      })
      .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
    try {
      const { agent } = connection;
      await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
      const { sessionId } = await agent.request("session/new", { cwd: join(folder, "work"), mcpServers: [] });
      const prompt = (words: string) =>
        agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });

      expect(await prompt("Please [[say hello from the script]]")).toMatchObject({ stopReason: "end_turn" });
      expect(text).toBe("hello from the script");

      text = "";
      expect(await prompt("Now [[shell printf ran-%d 42]]")).toMatchObject({ stopReason: "end_turn" });
      expect(text).toContain("FINAL: ");
      expect(text).toContain("ran-42");
    } finally {
      child.stdin.end();
      child.kill();
      await exited;
      connection.close();
    }

    expect(server.requests.map(({ status }) => status)).not.toContain(401);
    const [first, second, third] = server.requests.filter(({ operation }) => operation === "generate");
    expect(first).toMatchObject({
      api: "gemini",
      model: "gemini-2.5-flash",
      streamed: true,
      credentials: [KEY],
    });
    expect(first?.lastUserText).toBe("Please [[say hello from the script]]");
    expect(second?.toolNames).toContain("run_shell_command");
    expect(third?.toolResults).toHaveLength(1);
  });
});
