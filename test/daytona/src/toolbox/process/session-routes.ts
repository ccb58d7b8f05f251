import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type {
  SessionCommandLogsResponse,
  Session as SessionDto,
  SessionExecuteResponse,
} from "@daytona/toolbox-api-client";
import { ApiError, badRequest } from "../../http/api-error.js";
import { sendEmpty, sendJson } from "../../http/json.js";
import type { Routes } from "../../http/routes.js";
import { Body } from "../body.js";
import { follow } from "./follow.js";
import { failedToStart, type Session } from "./session.js";
import { demultiplex } from "./session-shell.js";
import type { Sessions } from "./sessions.js";

async function output(session: Session, commandId: string): Promise<SessionCommandLogsResponse> {
  const log = await readFile(session.files(commandId).log);
  const { stdout, stderr } = demultiplex(log);
  return { output: log.toString("utf8"), stdout: stdout.toString("utf8"), stderr: stderr.toString("utf8") };
}

const described = async (session: Session): Promise<SessionDto> => ({
  sessionId: session.id,
  commands: await session.views(),
});

export function addSessionRoutes(routes: Routes, sessions: Sessions): void {
  const command = "/process/session/:session/command/:command";

  routes.on("POST", "/process/session", async ({ request, response }) => {
    const id = (await Body.of(request)).text("sessionId");
    if (!id) throw new ApiError(400, "invalid request body: sessionId", "INVALID_REQUEST_BODY");
    await sessions.create(id);
    sendEmpty(response, 201);
  });

  routes.on("GET", "/process/session", async ({ response }) => {
    sendJson(response, 200, await Promise.all(sessions.all().map(described)));
  });

  routes.on("GET", "/process/session/:session", async ({ response, path }) => {
    sendJson(response, 200, await described(sessions.get(path("session"))));
  });

  routes.on("DELETE", "/process/session/:session", async ({ response, path }) => {
    await sessions.delete(path("session"));
    sendEmpty(response, 204);
  });

  routes.on("POST", "/process/session/:session/exec", async ({ request, response, path }) => {
    const body = await Body.of(request);
    const text = body.text("command") ?? "";
    if (text.trim() === "") throw badRequest("command cannot be empty");
    const session = sessions.find(path("session"));
    if (session === undefined) throw failedToStart("not found: session not found");
    const runAsync = body.flag("runAsync") || body.flag("async");
    const cmdId = await session.start({
      command: text,
      runAsync,
      suppressInputEcho: body.flag("suppressInputEcho"),
    });
    if (runAsync) {
      sendJson(response, 202, { cmdId } satisfies SessionExecuteResponse);
      return;
    }
    const exitCode = await session.finished(cmdId);
    const result: SessionExecuteResponse = { cmdId, exitCode, ...(await output(session, cmdId)) };
    sendJson(response, 200, result);
  });

  routes.on("GET", command, async ({ response, path }) => {
    sendJson(response, 200, await sessions.get(path("session")).view(path("command")));
  });

  routes.on("POST", `${command}/input`, async ({ request, response, path }) => {
    const data = (await Body.of(request)).text("data") ?? "";
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    await sessions.get(path("session")).input(path("command"), data, gone.signal);
    sendEmpty(response, 204);
  });

  routes.on("GET", `${command}/logs`, async ({ response, path }) => {
    sendJson(response, 200, await output(sessions.get(path("session")), path("command")));
  });

  // For the control plane, which makes WebSocket frames of it.
  routes.on("GET", `${command}/follow`, async ({ response, path }) => {
    const session = sessions.get(path("session"));
    const files = session.files(path("command"));
    response.writeHead(200, { "content-type": "application/octet-stream" });
    response.flushHeaders();
    // A listener may disconnect at any time.
    await pipeline(Readable.from(follow(files, session.ended)), response).catch(() => response.destroy());
  });
}
