/**
 * A program of the bench: creates a sandbox, runs `node -v` in it, and says when it had the output. Each time ends with
 * the sandbox closed, so that the CPU of the whole can be read between two of them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import type { Sandbox } from "@ambit/core/plugin";
import { openBackend } from "./confined.js";
import { openContainers } from "./docker.js";
import { dockerRun } from "./docker-run.js";
import {
  type FirstCommandAnswer,
  type FirstCommandSide,
  firstCommandRequestSchema,
  placesSchema,
} from "./first-command.js";

const node = process.execPath;
const environment = { PATH: "/usr/bin:/bin" };
const places = placesSchema.parse(JSON.parse(process.argv[2] ?? "{}"));

/** From bubblewrap's manual: the system read-only, everything unshared; and Node, which may be elsewhere. */
const bubblewrap = [
  ...[
    "bwrap",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--symlink",
    "usr/lib",
    "/lib",
  ],
  ...["--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--ro-bind", node, node],
  ...["--unshare-all", "--die-with-parent", "--", node, "-v"],
] as const;

/** Characters of what a program says of its failure. */
const maxWords = 500;

type Measure = () => Promise<{ readonly ms: number; end(): Promise<unknown> }>;

/** One way to run it, and what it needs before the first time. */
interface Way {
  readonly measure: Measure;
  close?(): PromiseLike<unknown>;
}

/** @param argvOf what is started, where that is part of what is measured. */
const started =
  (
    argvOf: () => Promise<readonly string[]> | readonly string[],
    env: Readonly<Record<string, string>> = environment,
  ): Measure =>
  async () => {
    const begun = performance.now();
    const [program = "", ...args] = await argvOf();
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env });
    const ended = once(child, "exit");
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-maxWords);
    });
    const refused = once(child, "close").then(() => {
      throw new Error(`it ended without output: ${said.trim()}`);
    });
    const [output] = await Promise.race([once(child.stdout, "data"), refused]);
    // It ends after the output, too.
    refused.catch(() => undefined);
    const ms = performance.now() - begun;
    checkVersion(output);
    return { ms, end: () => ended };
  };

const inSandbox =
  (open: () => Promise<Sandbox>, program: string): Measure =>
  async () => {
    const begun = performance.now();
    const sandbox = await open();
    const command = await sandbox.spawn({ argv: [program, "-v"], env: environment, role: "agent" });
    const { value } = await command.stdout.getReader().read();
    const ms = performance.now() - begun;
    checkVersion(value);
    const end = async () => {
      await command.exit;
      await sandbox.close();
    };
    return { ms, end };
  };

function checkVersion(output: unknown): void {
  const text = output instanceof Uint8Array ? Buffer.from(output).toString() : "";
  if (!text.startsWith("v")) throw new Error(`node -v said ${JSON.stringify(text)}`);
}

async function local(limited: boolean): Promise<Way> {
  const { open, close } = await openBackend({ network: "own", limited });
  return { measure: inSandbox(open, node), close };
}

function engine() {
  if (places.engine === undefined) throw new Error("there is no Docker engine");
  return places.engine;
}

async function container(runtime: "runc" | "runsc", prewarm: number): Promise<Way> {
  const containers = await openContainers(engine(), prewarm, runtime);
  const measure = inSandbox(() => containers.open(), "/usr/local/bin/node");
  return { measure, close: () => containers[Symbol.asyncDispose]() };
}

/** Milliseconds in which the next container is prepared on a busy machine too. */
const preparedMs = 2_000;

async function preparedContainer(): Promise<Way> {
  const way = await container("runc", 1);
  const { end } = await way.measure();
  await end();
  const measure = async () => {
    await pause(preparedMs);
    return await way.measure();
  };
  return { ...way, measure };
}

/** The part of sandbox-runtime's API that is used here. */
interface SandboxRuntime {
  readonly SandboxManager: {
    initialize(config: object): Promise<void>;
    wrapWithSandbox(command: string): Promise<string>;
    reset(): Promise<void>;
  };
}

/** It has one sandbox for each process, so only wrapping and starting are repeated. */
async function sandboxRuntime(): Promise<Way> {
  if (places.sandboxRuntime === undefined) throw new Error("it isn't installed: use --peers");
  const { SandboxManager }: SandboxRuntime = await import(places.sandboxRuntime);
  await SandboxManager.initialize({
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
  });
  const wrapped = async () => ["/bin/sh", "-c", await SandboxManager.wrapWithSandbox(`${node} -v`)];
  return { measure: started(wrapped), close: () => SandboxManager.reset() };
}

async function plainContainer(runtime: "runc" | "runsc"): Promise<Way> {
  const { argv, env, close } = await dockerRun(engine(), runtime, ["node", "-v"]);
  return { measure: started(() => argv, env), close };
}

const ways: Readonly<Record<FirstCommandSide, () => Way | Promise<Way>>> = {
  plain: () => ({ measure: started(() => [node, "-v"]) }),
  bubblewrap: () => ({ measure: started(() => bubblewrap) }),
  "sandbox-runtime": sandboxRuntime,
  ambit: () => local(false),
  "ambit-limited": () => local(true),
  "docker-run": () => plainContainer("runc"),
  "ambit-docker": () => container("runc", 0),
  "ambit-docker-prepared": preparedContainer,
  "docker-run-gvisor": () => plainContainer("runsc"),
  "ambit-gvisor": () => container("runsc", 0),
};

const opened = new Map<FirstCommandSide, Promise<Way>>();

async function perform(side: FirstCommandSide): Promise<number> {
  const way = opened.get(side) ?? Promise.resolve().then(ways[side]);
  opened.set(side, way);
  const { ms, end } = await (await way).measure();
  await end();
  return ms;
}

process.on("message", (message: unknown) => {
  const { id, side } = firstCommandRequestSchema.parse(message);
  const answer = (content: Omit<FirstCommandAnswer, "id">) => process.send?.({ id, ...content });
  perform(side).then(
    (ms) => answer({ ms }),
    (error: unknown) => answer({ error: String(error) }),
  );
});
process.on("disconnect", async () => {
  for (const way of opened.values()) await way.then(({ close }) => close?.()).catch(() => undefined);
  process.exit();
});
