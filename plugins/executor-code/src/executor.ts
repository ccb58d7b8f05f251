import { readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import {
  type Command,
  type Domain,
  type Exit,
  type ImageRootfs,
  type Issue,
  inject,
  JsonTooLarge,
  KeptPieces,
  type Process,
  parseBoundedJson,
  pluginTokens,
  type RunScope,
  RunTimedOut,
  SandboxFailed,
  type ToolCall,
  type ToolExecutor,
  type ToolOutcome,
  type ToolScope,
  type ToolSpec,
  type ToolUse,
} from "@ambit/core/plugin";
import { z } from "zod";

export const configSchema = z.strictObject({
  /** Programs looked up in the sandbox, in `path` or its image's own; an absolute path is used as it is. */
  interpreters: z
    .strictObject({ python: z.string().min(1).default("python3"), node: z.string().min(1).default("node") })
    .prefault({}),
  /** `PATH` of a tool's process, where the sandbox shows the runner's programs. The folder of the runner's own node is added last. */
  path: z.string().min(1).default("/usr/local/bin:/usr/bin:/bin"),
  /** Bytes of a returned value, as JSON; a longer one is a failure. Default 4 MiB. */
  maxResultBytes: z
    .int()
    .positive()
    .default(4 * 1024 * 1024),
  /** Characters of what a tool printed that are given with its failure. */
  maxPrintedCharacters: z.int().nonnegative().default(2_000),
  /** Whether one interpreter of each runtime that a run has tools for waits in its own jail for the next call. */
  prewarm: z.boolean().default(true),
});
export type CodeConfig = z.output<typeof configSchema>;

/**
 * Runs a tool's snippet in the run's sandbox, only by `sandbox.spawn`: the sandbox's guarantees hold for the snippet too,
 * so the executor has nothing to claim or prove.
 */
export class CodeExecutor implements ToolExecutor {
  readonly name = "code";
  readonly kind = "code";
  readonly site = "sandbox";
  readonly claims = [];

  /** The waiting interpreters of each run. */
  readonly #runs = new Map<RunScope["request"], WaitingInterpreters>();

  constructor(@inject(pluginTokens.config) readonly config: CodeConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  gaps(): [] {
    return [];
  }

  probe(): Promise<[]> {
    return Promise.resolve([]);
  }

  issues({ tool }: ToolUse): readonly Issue[] {
    const issues: Issue[] = [];
    if (tool.runtime === undefined)
      issues.push({ path: "runtime", message: 'must be "python" or "node" for a code tool' });
    if (tool.code === undefined || tool.code.trim() === "") {
      issues.push({ path: "code", message: "must hold the snippet of a code tool" });
    }
    return issues;
  }

  /** One interpreter of each runtime that the run has tools for: while its model thinks, they come up. */
  prepare(tools: readonly ToolSpec[], scope: RunScope): void {
    const waiting = this.#waitingOf(scope);
    const runtimes = new Set(tools.flatMap(({ runtime }) => runtime ?? []));
    for (const runtime of runtimes) waiting?.prepare(runtime, this.#startIn(scope));
  }

  async execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome> {
    const { maxResultBytes, maxPrintedCharacters } = this.config;
    const { runtime } = call.tool;
    if (runtime === undefined) return failed("code tool has no runtime", "");
    const waiting = this.#waitingOf(scope);
    const start = this.#startIn(scope);
    const stdin = stdinOf(call);
    try {
      const prepared = await waiting?.give(runtime, stdin, scope.signal);
      const child = prepared ?? (await start(runtime, scope.signal));
      let tooLarge = false;
      const reply = collectStart(child.stdout, maxResultBytes, () => {
        tooLarge = true;
        void child.kill();
      });
      const prints = collectEnd(child.stderr, maxPrintedCharacters);
      if (prepared === undefined) await feed(child.stdin, stdin);
      const ended = { exit: await child.exit, reply: await reply, prints: await prints };
      if (tooLarge)
        return failed(
          `code tool returned more than ${maxResultBytes} bytes: return less, or a summary`,
          ended.prints,
        );
      if (scope.signal.aborted) return failed(whyAborted(scope), ended.prints);
      return outcomeOf(ended);
    } catch (error) {
      if (scope.signal.aborted) return failed(whyAborted(scope), "");
      scope.log.warn({ tool: call.tool.name, error }, "a code tool could not be started");
      const why = error instanceof SandboxFailed ? `: ${error.message}` : "";
      return failed(`code tool could not be started in the sandbox${why}`, "");
    } finally {
      // Once the answer is on its way: the next call gains nothing from this one's waiting.
      if (!scope.signal.aborted) setImmediate(() => waiting?.prepare(runtime, start));
    }
  }

  #startIn({ sandbox }: RunScope): StartInterpreter {
    return (runtime, signal) =>
      sandbox.spawn({ ...programOf(runtime, this.config, sandbox.image), role: "tool", signal });
  }

  #waitingOf(scope: RunScope): WaitingInterpreters | undefined {
    if (!this.config.prewarm || !mayPrewarm(scope)) return undefined;
    const earlier = this.#runs.get(scope.request);
    if (earlier !== undefined) return earlier;
    const made = new WaitingInterpreters(scope.log);
    this.#runs.set(scope.request, made);
    scope.defer(() => {
      this.#runs.delete(scope.request);
      return made.close();
    });
    return made;
  }
}

/** What waits counts towards the run's limits, and unconfined it would lie open to every process of its user. */
function mayPrewarm({ sandbox, boundary: { resources } }: RunScope): boolean {
  const { processes = Number.POSITIVE_INFINITY, memoryMb = Number.POSITIVE_INFINITY } = resources;
  return sandbox.confinement === "confined" && processes >= 100 && memoryMb >= 512;
}

function whyAborted({ signal, timeoutMs }: ToolScope): string {
  return signal.reason instanceof RunTimedOut
    ? `code tool timed out after ${timeoutMs}ms`
    : "code tool was aborted";
}

/** Starts a runtime's interpreter in its own jail: it waits at its bootstrap's first read for its call. */
type StartInterpreter = (runtime: Runtime, signal: AbortSignal) => Promise<Process>;

interface Waiting {
  /** The process. Undefined when it couldn't be started. */
  readonly child: Promise<Process | undefined>;
  readonly stop: AbortController;
}

/**
 * The interpreters that wait for a run's next calls, one of each runtime at most. Each gets one call and ends with it:
 * what is saved is the wait for a jail and its interpreter, and nothing is shared. It is started without anything of
 * any tool, which all comes with the call.
 */
class WaitingInterpreters {
  readonly #waiting = new Map<Runtime, Waiting>();
  readonly #log: ToolScope["log"];
  #closed = false;

  constructor(log: ToolScope["log"]) {
    this.#log = log;
  }

  /** Keeps one waiting from now on. If it can't be started, the next call reports why. */
  prepare(runtime: Runtime, start: StartInterpreter): void {
    if (this.#closed || this.#waiting.has(runtime)) return;
    const stop = new AbortController();
    const child = start(runtime, stop.signal).catch((error: unknown) => {
      this.#log.debug({ runtime, error }, "no interpreter could be started in advance");
      return undefined;
    });
    this.#waiting.set(runtime, { child, stop });
  }

  /**
   * Gives a call to the one that waits, or is just coming up, which ends when `signal` aborts. Undefined when there is
   * none, or it died before it had the whole call: then nothing of the call was run.
   */
  async give(runtime: Runtime, call: string, signal: AbortSignal): Promise<Process | undefined> {
    const waiting = this.#waiting.get(runtime);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(runtime);
    const stop = () => waiting.stop.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const child = await waiting.child;
    if (child === undefined || (await feed(child.stdin, call))) return child;
    await end(child);
    return undefined;
  }

  /** Resolves when none waits any more, and none will. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    await Promise.all(
      left.map(async ({ child, stop }) => {
        stop.abort();
        const started = await child;
        if (started !== undefined) await end(started);
      }),
    );
  }
}

/** What is left in its pipes isn't read. */
async function end(child: Process): Promise<void> {
  await child.kill();
  await child.exit;
  await Promise.allSettled([child.stdin.abort(), child.stdout.cancel(), child.stderr.cancel()]);
}

type Runtime = "python" | "node";

const bootstraps: Readonly<Record<Runtime, string>> = {
  python: readFileSync(new URL("../bootstrap/main.py", import.meta.url), "utf8"),
  node: readFileSync(new URL("../bootstrap/main.cjs", import.meta.url), "utf8"),
};

/** Kept apart from stdout before the interpreter starts: Node can't move a descriptor itself. */
const replyOnThree = 'exec 3>&1 1>&2; exec "$@"';

/**
 * The process that runs a tool. Its arguments hold our own bootstrap and nothing of the tool's: code, arguments and
 * values travel on stdin, where no other process can read them.
 */
function programOf(
  runtime: Runtime,
  config: CodeConfig,
  image: ImageRootfs | undefined,
): Pick<Command, "argv" | "env"> {
  const interpreter = config.interpreters[runtime];
  return {
    argv:
      runtime === "python"
        ? [interpreter, "-I", "-c", bootstraps.python]
        : ["/bin/sh", "-c", replyOnThree, "sh", interpreter, "-e", bootstraps.node],
    // HOME and TMPDIR are the sandbox's to set: each tool has its own.
    env: { PATH: image?.searchPath ?? runnerPath(config), LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
  };
}

function runnerPath({ path }: CodeConfig): string {
  const ownNode = dirname(realpathSync(process.execPath));
  return [path, ownNode].join(delimiter);
}

/** What the bootstrap reads from stdin. */
function stdinOf({ tool, arguments: given }: ToolCall): string {
  return JSON.stringify({ code: tool.code ?? "", env: tool.env ?? {}, arguments: given });
}

const replySchema = z.union([
  z.strictObject({ returned: z.unknown() }),
  z.strictObject({ failed: z.string() }),
]);

interface ToolExit {
  readonly exit: Exit;
  /** What came on the reply's channel. */
  readonly reply: string;
  /** The end of what the tool printed. */
  readonly prints: string;
}

/** What an ended process says to the model. Pure. */
export function outcomeOf({ exit, reply, prints }: ToolExit): ToolOutcome {
  const value = parseJson(reply);
  if (value instanceof JsonTooLarge)
    return failed(`code tool returned what ${value.message}: return less, or a summary`, prints);
  const parsed = replySchema.safeParse(value);
  if (!parsed.success) return failed(`code tool ${howItEnded(exit)}`, prints, "(no stderr)");
  if ("failed" in parsed.data) return failed(parsed.data.failed, prints);
  const { returned } = parsed.data;
  const output = typeof returned === "string" ? returned : JSON.stringify(returned ?? null);
  return { status: "completed", output, data: returned ?? null };
}

/** The tool's own failure, with what it printed: often the only trace of what went wrong. */
function failed(message: string, prints: string, ifSilent?: string): ToolOutcome {
  const printed = prints.trim() === "" ? ifSilent : prints.trim();
  return {
    status: "failed",
    output: printed === undefined ? message : `${message}\nIt printed:\n${printed}`,
  };
}

function howItEnded({ code, signal }: Exit): string {
  if (signal === "SIGKILL" || code === 137)
    return "was killed (SIGKILL): it may have exceeded its memory limit";
  if (signal !== null) return `was ended by ${signal}`;
  return code === 0
    ? "ended without a result: it exited before main returned"
    : `exited ${code ?? "unknown"}`;
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    // No reply, or half of one: the exit says more than the syntax error would.
    return error instanceof JsonTooLarge ? error : undefined;
  }
}

/** Reads a stream to its end and keeps its first bytes. `exceeded` is called once, when there are more. */
async function collectStart(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  exceeded: () => void,
): Promise<string> {
  const beginning = new KeptPieces();
  let size = 0;
  for await (const chunk of stream) {
    if (size <= limit && size + chunk.length > limit) exceeded();
    if (size <= limit) beginning.push(chunk);
    size += chunk.length;
  }
  return size > limit ? "" : beginning.take().toString("utf8");
}

/** Reads a stream to its end and keeps its last characters, however much there is. */
export async function collectEnd(stream: ReadableStream<Uint8Array>, characters: number): Promise<string> {
  const decoder = new TextDecoder();
  let end = "";
  for await (const chunk of stream) {
    const read = end + decoder.decode(chunk, { stream: true });
    end = read.slice(Math.max(0, read.length - characters));
  }
  return end;
}

/** Writes a text and ends the stream. False when its reader left before it had all of it. */
async function feed(stdin: WritableStream<Uint8Array>, text: string): Promise<boolean> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
    return true;
  } catch {
    // A child that ends without reading its input is no fault of ours: its exit says what happened.
    await writer.abort().catch(() => {});
    return false;
  } finally {
    writer.releaseLock();
  }
}
