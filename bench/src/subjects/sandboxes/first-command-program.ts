/**
 * A program of the bench: creates a sandbox, runs `node -v` in it, and says when it had the output. Each time ends with
 * the sandbox closed, so that the CPU of the whole can be read between two of them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Sandbox } from "@ambit/core/plugin";
import { type Backend, openBackend } from "./confined.js";
import {
  type FirstCommandAnswer,
  type FirstCommandSide,
  firstCommandRequestSchema,
} from "./first-command.js";

const node = process.execPath;
const environment = { PATH: "/usr/bin:/bin" };

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

type Measure = () => Promise<{ readonly ms: number; end(): Promise<void> }>;

const started = (argv: readonly [string, ...string[]]): Measure => {
  const [program, ...args] = argv;
  return async () => {
    const begun = performance.now();
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: environment });
    const ended = once(child, "exit");
    const [output] = await once(child.stdout, "data");
    const ms = performance.now() - begun;
    checkVersion(output);
    return { ms, end: async () => void (await ended) };
  };
};

const inSandbox = (open: () => Promise<Sandbox>): Measure => {
  return async () => {
    const begun = performance.now();
    const sandbox = await open();
    const command = await sandbox.spawn({ argv: [node, "-v"], env: environment, role: "agent" });
    const reader = command.stdout.getReader();
    const { value } = await reader.read();
    const ms = performance.now() - begun;
    checkVersion(value);
    return {
      ms,
      end: async () => {
        await command.exit;
        await sandbox.close();
      },
    };
  };
};

function checkVersion(output: unknown): void {
  const text = output instanceof Uint8Array ? Buffer.from(output).toString() : "";
  if (!text.startsWith("v")) throw new Error(`node -v said ${JSON.stringify(text)}`);
}

const backends = new Map<FirstCommandSide, Promise<Backend>>();

function sandboxesOf(side: FirstCommandSide, limited: boolean): Measure {
  return inSandbox(async () => {
    const known = backends.get(side) ?? openBackend({ network: "own", limited });
    backends.set(side, known);
    return (await known).open();
  });
}

const measures: Readonly<Record<FirstCommandSide, Measure>> = {
  plain: started([node, "-v"]),
  bubblewrap: started(bubblewrap),
  ambit: sandboxesOf("ambit", false),
  "ambit-limited": sandboxesOf("ambit-limited", true),
};

async function perform(message: unknown): Promise<Omit<FirstCommandAnswer, "id">> {
  const { side } = firstCommandRequestSchema.parse(message);
  const { ms, end } = await measures[side]();
  await end();
  return { ms };
}

process.on("message", (message: { id: number }) => {
  const answer = (content: Omit<FirstCommandAnswer, "id">) => process.send?.({ id: message.id, ...content });
  perform(message).then(answer, (error: unknown) => answer({ error: String(error) }));
});
process.on("disconnect", async () => {
  for (const backend of backends.values()) await backend.then(({ close }) => close()).catch(() => undefined);
  process.exit();
});
