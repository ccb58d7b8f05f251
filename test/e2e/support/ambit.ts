import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RunResult, StreamRecord } from "@ambit/core";
import { execa } from "execa";
import { afterAll, expect, onTestFinished } from "vitest";
import { keptEvidence } from "./configurations.js";

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
/** What users start. */
const program = fileURLToPath(new URL("../bin/ambit.mjs", import.meta.resolve("ambit")));

/** Stored runs of one file's servers: their ids and sessions are no other file's. */
const stored = mkdtempSync(join(tmpdir(), "ambit-e2e-store-"));
const store = join(stored, "runs.sqlite");
afterAll(() => rmSync(stored, { recursive: true, force: true, maxRetries: 5 }));

/**
 * What a test may add; nothing of the tester's own AMBIT_ variables gets in. Evidence and compiled code are in the test
 * run's own XDG_CACHE_HOME.
 */
function environmentWith(variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("AMBIT_"));
  return {
    ...Object.fromEntries(own),
    AMBIT_SQLITE_FILE: store,
    AMBIT_BLOBS_FOLDER: join(stored, "blobs"),
    ...variables,
  };
}

/** An empty folder, removed with the test. */
export async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-e2e-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Finished {
  /** Undefined after a signal. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command of the built program, with its own arguments and stdin. */
export async function ambit(
  args: readonly string[],
  options: {
    readonly input?: unknown;
    readonly env?: Record<string, string>;
    readonly cwd?: string;
    /** Default: the tester's own. */
    readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  } = {},
): Promise<Finished> {
  const { input = "", cwd = repository, user = {} } = options;
  const { exitCode, stdout, stderr } = await execa(process.execPath, [program, ...args], {
    cwd,
    env: environmentWith(options.env ?? {}),
    extendEnv: false,
    ...user,
    input: typeof input === "string" ? input : JSON.stringify(input),
    stripFinalNewline: false,
    reject: false,
  });
  return { code: exitCode, stdout, stderr };
}

/** What an editor starts, with nothing else in its environment. */
export const ambitCommand: readonly [string, string] = [process.execPath, program];

/** The same, not waited for; killed with the test if it still lives. */
export function startAmbit(args: readonly string[], options: LaunchOptions = {}): ChildProcess {
  const child = launch(args, {}, options);
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Ctrl-C. */
export const interrupt = "\u0003";

/** The program at a terminal of its own; killed with the test if it still lives. */
export function startTerminal(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const command = [process.execPath, program, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qefc", command, "/dev/null"], {
    cwd: repository,
    env: environmentWith(env),
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let printed = "";
  child.stdout.on("data", (bytes: Buffer) => {
    printed += String(bytes);
  });
  const exit = once(child, "close").then(([code]) => code);
  return {
    exit,
    printed: () => printed,
    /** Waits for the question, and answers it. @returns what was printed until then */
    answer: async (asked: RegExp, text: string) => {
      await expect.poll(() => asked.test(printed), { timeout: 60_000, message: String(asked) }).toBe(true);
      const before = printed;
      printed = "";
      child.stdin.write(text === interrupt ? text : `${text}\n`);
      return before;
    },
  };
}

/** What a test may change about the process itself. */
export interface LaunchOptions {
  /** In a process group of its own. Default false. */
  readonly detached?: boolean;
}

function launch(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  options: LaunchOptions = {},
): ChildProcess {
  return spawn(process.execPath, [program, ...args], {
    cwd: repository,
    env: environmentWith(env),
    stdio: ["pipe", "pipe", "pipe"],
    ...options,
  });
}

export interface Server {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly url: string;
  /** Everything it has logged so far. */
  log(): string;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Resolves with the exit code, null after a signal. */
  readonly exit: Promise<number | null>;
}

/**
 * The built server as a process of its own, on a free port; killed with the test if it still lives.
 *
 * @param env without a token, the server requires none, unless it sets AMBIT_AUTH.
 * @param args default: all defaults, but with the evidence of earlier servers.
 */
export async function serve(
  env: Record<string, string> = {},
  args: readonly string[] = keptEvidence,
  options: LaunchOptions = {},
): Promise<Server> {
  const server = await startServer(env, args, options);
  onTestFinished(() => void server.process.kill("SIGKILL"));
  return server;
}

/** The same for several tests. The caller ends it. */
export async function startServer(
  env: Record<string, string> = {},
  args: readonly string[] = keptEvidence,
  options: LaunchOptions = {},
): Promise<Server> {
  const isGuarded = Object.keys(env).some((name) => name.endsWith("_TOKEN"));
  const auth: Record<string, string> = isGuarded ? {} : { AMBIT_AUTH: "none" };
  const child = launch(["serve", ...args], { AMBIT_PORT: "0", ...auth, ...env }, options);
  const exit = once(child, "exit").then(([code]) => code);
  const lines: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    if (child.stderr === null) return reject(new Error("no stderr"));
    createInterface({ input: child.stderr }).on("line", (line) => {
      lines.push(line);
      const listening = /"url":"([^"]+)"/.exec(line)?.[1];
      if (listening !== undefined) resolve(listening);
    });
    exit.then((code) => reject(new Error(`the server exited with ${code}: ${lines.join("\n")}`)), reject);
  });
  return {
    process: child,
    pid: child.pid ?? 0,
    url,
    exit,
    log: () => lines.join("\n"),
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers,
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
  };
}

/** A request for the demo agent with this script, in which every tool is allowed. */
export function demo(...script: readonly string[]) {
  const messages = [{ role: "user", content: script.join("\n") }];
  return { harness: "demo", permissions: { default: "allow" }, messages };
}

/** The body of a response, checked by the contract. */
export async function bodyOf<Body = RunResult>(response: Response): Promise<Body> {
  const body: unknown = await response.json();
  return body as Body;
}

export const ndjson = { accept: "application/x-ndjson" };

/** The records of an NDJSON response, as they arrive. */
export async function* recordsOf(response: Response): AsyncGenerator<StreamRecord> {
  if (response.body === null) return;
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    // A blank line says that the server is still there: 15 seconds passed without a record.
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Reads until a record matches, and leaves the rest for the next reader. */
export async function readUntil(
  records: AsyncGenerator<StreamRecord>,
  matches: (record: StreamRecord) => boolean,
): Promise<StreamRecord> {
  for (let next = await records.next(); next.done !== true; next = await records.next()) {
    if (matches(next.value)) return next.value;
  }
  throw new Error("the stream ended before");
}

/** The terminal record's result; a stream without one is an error. */
export async function resultOf(records: AsyncGenerator<StreamRecord>): Promise<RunResult> {
  const record = await readUntil(records, ({ kind }) => kind === "result");
  if (record.kind !== "result") throw new Error("unreachable");
  return record.result;
}

export const isMessage =
  (containing: string) =>
  (record: StreamRecord): boolean =>
    record.kind === "event" && JSON.stringify(record.event).includes(containing);
