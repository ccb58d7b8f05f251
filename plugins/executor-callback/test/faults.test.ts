import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { freePort } from "@ambit/backend-kit";
import { RunCancelled, RunTimedOut } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { configSchema } from "../src/config.js";
import { call, executorOf, type LogLine } from "./calls.js";
import { answerWith, startPlatform } from "./platform.js";

/** Aborts as a run does when the tool's time limit passes. */
function timeLimit(milliseconds = 200): AbortSignal {
  const limit = new AbortController();
  const reason = new RunTimedOut(`Tool 'weather' took longer than ${milliseconds} ms.`);
  const timer = setTimeout(() => limit.abort(reason), milliseconds);
  onTestFinished(() => clearTimeout(timer));
  return limit.signal;
}

const { maxAnswerBytes } = configSchema.parse({});
const outOfTime = {
  status: "failed",
  output: "Tool 'weather' failed: no complete answer in time. Tool 'weather' took longer than 200 ms.",
};

/** A server that speaks no HTTP of its own. */
async function startRaw(serve: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    // The client leaves in the middle: that is the test.
    socket.on("error", () => undefined);
    socket.once("data", () => serve(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  return `http://127.0.0.1:${address.port}/tools/call`;
}

describe("a callback server that", () => {
  it("hangs is abandoned at the time limit", async () => {
    const platform = await startPlatform(() => undefined);
    expect(await call({ endpoint: `${platform.origin}/`, signal: timeLimit() })).toEqual(outOfTime);
  });

  it("sends its headers byte by byte is abandoned at the time limit", async () => {
    const closed = Promise.withResolvers<void>();
    const endpoint = await startRaw((socket) => {
      const bytes = [..."HTTP/1.1 200 OK\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"];
      const timer = setInterval(() => socket.write(bytes.shift() ?? "a"), 10);
      socket.once("close", () => {
        clearInterval(timer);
        closed.resolve();
      });
    });
    expect(await call({ endpoint, signal: timeLimit() })).toEqual(outOfTime);
    await closed.promise;
  });

  it("sends an endless slow body is abandoned at the time limit, and its connection is closed", async () => {
    const closed = Promise.withResolvers<void>();
    const platform = await startPlatform((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write("."), 10);
      response.once("close", () => {
        clearInterval(timer);
        closed.resolve();
      });
    });
    expect(await call({ endpoint: `${platform.origin}/`, signal: timeLimit() })).toEqual(outOfTime);
    await closed.promise;
  });

  it("sends an error's text slowly doesn't delay the call: its status is enough", async () => {
    const platform = await startPlatform((_request, response) => {
      response.writeHead(503);
      const timer = setInterval(() => response.write("."), 10);
      response.once("close", () => clearInterval(timer));
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' failed: HTTP 503" });
  });

  it("answers 500 has its text logged only, truncated", async () => {
    const platform = await startPlatform((_request, response) => {
      response.statusCode = 500;
      response.end(`Traceback: db password hunter2 ${"at x ".repeat(20_000)}`);
    });
    const logged: LogLine[] = [];
    const outcome = await call({ endpoint: `${platform.origin}/`, logged });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' failed: HTTP 500" });
    expect(logged).toHaveLength(1);
    expect(String(logged[0]?.fields.excerpt)).toMatch(/^Traceback: db password hunter2 (at x )+(at )?$/);
    expect(String(logged[0]?.fields.excerpt).length).toBeGreaterThan(490);
    expect(String(logged[0]?.fields.excerpt).length).toBeLessThanOrEqual(500);
  });

  it.each([
    {
      code: "duplicate_key",
      message: "Two skills share a name.",
      next_step: "Rename one.",
      retryable: false,
    },
    { code: "duplicate_key" },
    { next_step: "Ask the user to connect GitHub." },
  ])("answers an error with the detail %j tells it to the model", async (detail) => {
    const platform = await startPlatform((_request, response) => {
      response.statusCode = 422;
      response.end(JSON.stringify({ detail, trace: "hunter2" }));
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    const output = `Tool 'weather' failed: HTTP 422: ${JSON.stringify(detail)}`;
    expect(outcome).toEqual({ status: "failed", output });
  });

  it.each([
    [{ code: 7, next_step: { url: "/internal" }, message: "db password hunter2" }],
    [{ code: " ", next_step: "", message: "hunter2" }],
    [{ message: "hunter2" }],
    ["a sentence with hunter2"],
    [[{ loc: ["body"], msg: "hunter2" }]],
    [null],
  ])("answers an error with the detail %j tells nothing of it", async (detail) => {
    const platform = await startPlatform((_request, response) => {
      response.statusCode = 422;
      response.end(JSON.stringify({ detail, code: "hunter2", next_step: "hunter2" }));
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' failed: HTTP 422" });
  });

  it("answers an error with a long detail has its beginning reported, marked as truncated", async () => {
    const platform = await startPlatform((_request, response) => {
      response.statusCode = 422;
      response.end(JSON.stringify({ detail: { code: "word ".repeat(1_000) } }));
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect("output" in outcome && outcome.output).toMatch(
      /^Tool 'weather' failed: HTTP 422: \{"code":"(word ){397,398} \(cut\)$/,
    );
  });

  it("answers an error over the size limit has none of it reported, and is abandoned", async () => {
    const platform = await startPlatform((_request, response) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ detail: { code: "X" }, more: "x".repeat(1_000_000) }));
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' failed: HTTP 500" });
  });

  it("answers 200 with an error status counts as failed", async () => {
    const platform = await startPlatform(
      answerWith(null, { code: "STATUS_CODE_ERROR", message: "no such city" }),
    );
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' failed: no such city" });
  });

  it.each([
    ["streams it", {}],
    ["announces it", { "content-length": String(1024 ** 3) }],
  ])("answers with 1 GB is cut off: %s", async (_what, headers) => {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    const platform = await startPlatform((_request, response) => {
      response.writeHead(200, headers);
      const chunk = Buffer.alloc(1024 * 1024, "a");
      const pump = () => {
        while (sent < 1024 ** 3 && !response.destroyed) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", pump);
        }
      };
      response.once("close", () => closed.resolve());
      pump();
    });
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome).toEqual({
      status: "failed",
      output: expect.stringContaining("longer than 4,000,000 bytes (executor-callback's maxAnswerBytes)"),
    });
    await closed.promise;
    expect(sent).toBeLessThan(64 * 1024 ** 2);
  });

  it("answers at the size limit is read completely", async () => {
    const platform = await startPlatform((_request, response) => response.end("a".repeat(maxAnswerBytes)));
    const outcome = await call({ endpoint: `${platform.origin}/` });
    expect(outcome.status).toBe("completed");
    expect("output" in outcome && Buffer.byteLength(outcome.output)).toBe(maxAnswerBytes);
  });

  it.each([301, 302, 303, 307, 308])("redirects is not followed: %i", async (status) => {
    const elsewhere = await startPlatform();
    for (const location of ["http://169.254.169.254/latest/meta-data/", `${elsewhere.origin}/`]) {
      const platform = await startPlatform((_request, response) => {
        response.writeHead(status, { location }).end();
      });
      const logged: LogLine[] = [];
      const outcome = await call({ endpoint: `${platform.origin}/`, logged });
      expect(outcome).toEqual({
        status: "failed",
        output: `Tool 'weather' failed: HTTP ${status}: the platform answered with a redirect, and redirects are never followed.`,
      });
      expect(logged[0]?.fields).toMatchObject({ status, location });
    }
    expect(elsewhere.received).toHaveLength(0);
    // The control: that location can be reached, by a client that follows.
    await fetch(`${elsewhere.origin}/`);
    expect(elsewhere.received).toHaveLength(1);
  });

  it.each([
    ["before the headers", ""],
    ["within the headers", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["within a body of known length", 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"call":'],
    ["within a chunked body", 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{"call":\r\n'],
  ])("drops the connection has failed: %s", async (_where, bytes) => {
    const endpoint = await startRaw((socket) => socket.write(bytes, () => socket.destroy()));
    const outcome = await call({ endpoint });
    expect(outcome).toEqual({ status: "failed", output: expect.stringContaining("could not be reached (") });
  });

  it("isn't running counts as failed, without its address in the model's text", async () => {
    const gone = await call({ endpoint: `http://127.0.0.1:${await freePort()}/` });
    expect(gone).toEqual({
      status: "failed",
      output: "Tool 'weather' failed: the platform could not be reached (ECONNREFUSED).",
    });
  });

  it("doesn't speak HTTP counts as failed", async () => {
    const endpoint = await startRaw((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"));
    expect(await call({ endpoint })).toMatchObject({ status: "failed" });
  });

  it("has an unusual content type is read nevertheless", async () => {
    const platform = await startPlatform((request, response) => {
      response.setHeader("content-type", "image/\u00e9; =");
      answerWith("fine")(request, response);
    });
    expect(await call({ endpoint: `${platform.origin}/` })).toEqual({ status: "completed", output: "fine" });
  });

  it("sends invalid UTF-8 is read with replacement characters", async () => {
    const platform = await startPlatform((_request, response) =>
      response.end(Buffer.from([0x61, 0xff, 0x62])),
    );
    expect(await call({ endpoint: `${platform.origin}/` })).toEqual({
      status: "completed",
      output: "a\ufffdb",
    });
  });
});

describe("an aborted call", () => {
  it("is abandoned at the time limit while its name is being resolved", async () => {
    const executor = executorOf({ lookup: () => new Promise(() => {}) });
    expect(await call({ endpoint: "http://platform.invalid/", executor, signal: timeLimit() })).toEqual(
      outOfTime,
    );
  });

  it("is not executed if it was aborted before its start", async () => {
    const platform = await startPlatform();
    const signal = AbortSignal.abort(new RunCancelled("cancelled"));
    const outcome = await call({ endpoint: `${platform.origin}/`, signal });
    expect(outcome).toEqual({ status: "failed", output: "Tool 'weather' was cancelled." });
    expect(platform.received).toHaveLength(0);
  });

  it("is not executed later if it was aborted while its name was being resolved", async () => {
    const platform = await startPlatform();
    const asked = Promise.withResolvers<() => void>();
    let lookups = 0;
    const executor = executorOf({
      lookup: async () => {
        lookups += 1;
        if (lookups === 1) await new Promise<void>((resolve) => asked.resolve(resolve));
        return ["127.0.0.1"];
      },
    });
    const cancel = new AbortController();
    const endpoint = `http://platform.invalid:${platform.port}/`;
    const outcome = call({ endpoint, executor, signal: cancel.signal });
    const resolveName = await asked.promise;
    cancel.abort(new RunCancelled("cancelled"));
    expect(await outcome).toEqual({ status: "failed", output: "Tool 'weather' was cancelled." });
    resolveName();
    // The control: the name can be resolved, and a second call arrives.
    expect(await call({ endpoint, executor, given: { n: 2 } })).toMatchObject({ status: "completed" });
    expect(platform.received.map(({ body }) => JSON.parse(body).data.function.arguments)).toEqual([{ n: 2 }]);
  });
});

describe("a run that another process may have by now", () => {
  it("sends nothing, even if its connection is ready", async () => {
    const platform = await startPlatform();
    const endpoint = `${platform.origin}/`;
    const executor = executorOf({});
    let mayAct = true;
    const made = () => call({ endpoint, executor, mayAct: () => mayAct });
    expect(await made()).toMatchObject({ status: "completed" });
    mayAct = false;
    expect(await made()).toEqual({
      status: "failed",
      output: "Tool 'weather' was not called: another process may have the run by now.",
    });
    mayAct = true;
    expect(await made()).toMatchObject({ status: "completed" });
    expect(platform.received).toHaveLength(2);
  });
});
