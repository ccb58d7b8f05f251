import { maxReadBytes } from "@ambit/backend-kit/safe-fs";
import { KeptPieces, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import type { Requests } from "../messages.js";
import type { Channels } from "../transport/channels.js";
import { streams } from "../transport/frame.js";

/**
 * A value, unless the signal aborts first: its source may ignore the signal, or never respond.
 * @param late gets the value if it arrives too late, to close it.
 * @throws the signal's reason
 */
export function awaitUnlessAborted<Value>(
  signal: AbortSignal,
  making: Promise<Value>,
  late: (value: Value) => void = () => undefined,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const giveUp = () => {
      isLate = true;
      reject(signal.reason);
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    making
      .then((value) => (isLate ? late(value) : resolve(value)), reject)
      .finally(() => signal.removeEventListener("abort", giveUp));
  });
}

/** The guest daemon's replies. It runs in the sandbox, so nothing that it sends is trusted. */
export const refusal = z.object({ refused: z.string().max(4_000) });
export const done = z.object({ done: z.literal(true) });
export const runStarted = z.object({
  started: z.object({ pid: z.int(), uid: z.int() }),
});
export const runEnded = z.object({
  exit: z.object({ code: z.int().nullable(), signal: z.string().nullable() }),
});
export const listening = z.object({ port: z.int().min(1).max(65_535) });
export const insideFacts = z.object({
  searchPath: z.string().max(4_000),
  node: z.string().max(100),
  uid: z.int(),
  ownUsers: z.boolean(),
  whyShared: z.string().max(4_000).optional(),
  openPorts: z.array(z.int().min(1).max(65_535)).max(100),
  closedBy: z.string().max(100).optional(),
  whyOpen: z.string().max(4_000).optional(),
});
export const insideContents = z.object({
  files: z.array(z.string().max(4_096)).max(2_000),
  processes: z.int().nonnegative(),
});

interface BridgeReply<Reply> {
  readonly reply: Reply;
  /** The data on the main stream before the reply. */
  readonly content: Uint8Array;
}

/** Bytes before a reply: the size of the largest file that can be read. A process inside may not send more. */
const maxContentBytes = maxReadBytes;

/**
 * One request on a separate channel, and its reply.
 * @param input sent on the main stream.
 * @throws SandboxFailed with the words of the guest daemon, or when the transport is lost.
 */
export function ask<Kind extends keyof Requests, Reply>(
  channels: Channels,
  kind: Kind,
  request: Requests[Kind],
  schema: z.ZodType<Reply>,
  input?: Uint8Array,
): Promise<BridgeReply<Reply>> {
  return new Promise((resolve, reject) => {
    const pieces = new KeptPieces();
    let length = 0;
    const channel = channels.open(kind, (opened) => ({
      data: (_lane, bytes, taken) => {
        length += bytes.length;
        if (length > maxContentBytes) {
          reject(
            new SandboxFailed(`The bridge inside sent more than ${maxContentBytes} bytes for '${kind}'`),
          );
          opened.close();
          return;
        }
        pieces.push(bytes);
        taken();
      },
      message: (message) => {
        const refused = refusal.safeParse(message);
        const reply = schema.safeParse(message);
        if (refused.success) reject(new SandboxFailed(refused.data.refused));
        else if (reply.success) resolve({ reply: reply.data, content: pieces.take() });
        else reject(new SandboxFailed(`The bridge inside gave no answer to '${kind}' that can be read`));
        opened.close();
      },
      closed: () => reject(new SandboxFailed("The sandbox is closed, or was lost")),
    }));
    const send = async () => {
      await channel.send(request);
      if (input === undefined) return;
      await channel.write(streams.main, input);
      channel.end(streams.main);
    };
    send().catch(reject);
  });
}
