import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import type { Sandbox } from "@ambit/core/plugin";
import { relayed } from "../../floors/relay.js";
import type { Goal, Measurement } from "../../goal.js";
import { interleaved, mediansOf, type Side, timed } from "../../measure.js";
import { type Namespaces, namespaces, openNamespaces } from "../../subjects/sandboxes/bridged.js";

const MB = 2 ** 20;
const rounds = 200;
const atMost = 1.5;
/** The cost of a bare Node relay in place of the guest daemon. */
const atMostOfRelay = 1.2;
const hello = ["/bin/echo", "here"] as const;
const cat = ["/bin/cat"] as const;
const line = Buffer.from(`${"x".repeat(99)}\n`);

/** The cost of a program's streams over the bridge, over its pipe alone, and without either. */
export const bridge: Goal = {
  id: "I4",
  title: "a process over the bridge ÷ over the bare pipe (nsenter) and ÷ a plain spawn",
  goal: "≤ 1.5 of the bare pipe; an echo ≤ 1.2 of a Node relay",
  needs: [namespaces],
  async run({ pairs }) {
    const far = await openNamespaces();
    try {
      const sandbox = await far.open();
      const few = pairs(10);
      return [
        ...(await pairsWith(
          "open and first output",
          few,
          opened(far),
          { pipe: piped(far, hello), plain: plain(hello) },
          false,
        )),
        ...(await pairsWith("first output", pairs(40), bridged(sandbox, hello), {
          pipe: piped(far, hello),
          plain: plain(hello),
        })),
        ...(await pairsWith(`an echo of 100 bytes (${rounds} in sequence)`, few, bridgedEchoes(sandbox), {
          pipe: pipedEchoes(far),
          plain: plainEchoes,
        })),
        ...(await pairsWithRelay(far, sandbox, few)),
        ...(await outputs(far, sandbox, "1 MB", MB, few)),
        ...(await outputs(far, sandbox, "100 MB", 100 * MB, pairs(5))),
      ];
    } finally {
      await far.close();
    }
  },
};

interface Floors {
  readonly pipe: Side;
  readonly plain: Side;
}

async function pairsWith(
  what: string,
  pairs: number,
  subject: Side,
  { pipe, plain: without }: Floors,
  // Opening isn't part of a stream, so it has no limit.
  isLimited = true,
): Promise<readonly Measurement[]> {
  const overPipe = await interleaved(subject, pipe, { pairs });
  const overPlain = await interleaved(subject, without, { pairs });
  return [
    {
      what: `${what} ÷ the bare pipe`,
      unit: "×",
      values: overPipe.ratios,
      ...(isLimited ? { limit: { atMost } } : {}),
      note: mediansOf(overPipe, "ms"),
    },
    {
      what: `${what} ÷ a plain spawn`,
      unit: "×",
      values: overPlain.ratios,
      note: mediansOf(overPlain, "ms"),
    },
  ];
}

/** The minimal cost of a process between pipe and program, compared with the bridge. */
async function pairsWithRelay(
  far: Namespaces,
  sandbox: Sandbox,
  pairs: number,
): Promise<readonly Measurement[]> {
  const relay = pipedEchoes(far, relayed(process.execPath, cat));
  const overPipe = await interleaved(relay, pipedEchoes(far), { pairs });
  const overRelay = await interleaved(bridgedEchoes(sandbox), relay, { pairs });
  return [
    {
      what: "the same through a Node relay that does nothing else ÷ the bare pipe",
      unit: "×",
      values: overPipe.ratios,
      note: mediansOf(overPipe, "ms"),
    },
    {
      what: "the same over the bridge ÷ through that relay",
      unit: "×",
      values: overRelay.ratios,
      limit: { atMost: atMostOfRelay },
      note: mediansOf(overRelay, "ms"),
    },
  ];
}

function outputs(far: Namespaces, sandbox: Sandbox, what: string, bytes: number, pairs: number) {
  const script = 'yes "some text, line after line" | head -c "$0"';
  const argv = ["/bin/sh", "-c", script, `${bytes}`] as const;
  const floors = { pipe: piped(far, argv), plain: plain(argv) };
  return pairsWith(what, pairs, bridged(sandbox, argv), floors);
}

type Argv = readonly [string, ...string[]];

const opened = (far: Namespaces) => async () => {
  const begun = performance.now();
  const sandbox = await far.open();
  await all((await sandbox.spawn({ argv: hello, env: {} })).stdout);
  const took = performance.now() - begun;
  await sandbox.close();
  return took;
};

const bridged = (sandbox: Sandbox, argv: Argv) => () =>
  timed(async () => {
    const child = await sandbox.spawn({ argv, env: { PATH: "/usr/bin:/bin" } });
    await all(child.stdout);
  });

const piped = (far: Namespaces, argv: Argv) => () =>
  timed(async () => {
    const pipe = await far.openPipe(argv, new AbortController().signal);
    await all(pipe.output);
    await pipe.close();
  });

const plain =
  ([program, ...rest]: Argv) =>
  () =>
    timed(async () => {
      const child = spawn(program, rest, { env: { PATH: "/usr/bin:/bin" } });
      await all(Readable.toWeb(child.stdout));
    });

const bridgedEchoes = (sandbox: Sandbox) => async () => {
  const child = await sandbox.spawn({ argv: cat, env: {} });
  const writer = child.stdin.getWriter();
  const ms = await echoes(child.stdout, (bytes) => writer.write(bytes));
  await child.kill();
  return ms;
};

const pipedEchoes =
  (far: Namespaces, argv: Argv = cat) =>
  async () => {
    const pipe = await far.openPipe(argv, new AbortController().signal);
    const ms = await echoes(pipe.output, (bytes) => pipe.write(bytes.toString("utf8")));
    await pipe.close();
    return ms;
  };

const plainEchoes = async () => {
  const child = spawn(cat[0]);
  const ms = await echoes(Readable.toWeb(child.stdout), async (bytes) => void child.stdin.write(bytes));
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
  return ms;
};

/** The sum, in milliseconds. */
async function echoes(
  output: ReadableStream<Uint8Array>,
  write: (bytes: Buffer) => Promise<void>,
): Promise<number> {
  const reader = output.getReader();
  const echo = async () => {
    await write(line);
    for (let length = 0; length < line.length; ) length += (await reader.read()).value?.length ?? line.length;
  };
  await echo();
  const ms = await timed(async () => {
    for (let round = 0; round < rounds; round++) await echo();
  });
  reader.releaseLock();
  return ms;
}

async function all(output: ReadableStream<Uint8Array>): Promise<void> {
  const reader = output.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read());
}
