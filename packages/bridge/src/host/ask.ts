import { maxReadBytes } from "@ambit/backend-kit/safe-fs";
import { KeptPieces, SandboxFailed } from "@ambit/core/plugin";
import type { z } from "zod";
import type { Requests } from "../messages.js";
import type { Channels } from "../transport/channels.js";
import { streams } from "../transport/frame.js";
import { refusal } from "./replies.js";

export interface BridgeReply<Reply> {
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
