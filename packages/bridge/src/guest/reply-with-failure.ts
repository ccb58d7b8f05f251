import { messageOf } from "@ambit/core/plugin";
import type { Channel } from "../transport/channel.js";

/** Executes a channel's request; a failure becomes the reply. */
export function replyWithFailure(channel: Channel, work: () => Promise<void>): void {
  work().catch((error: unknown) => channel.send({ refused: messageOf(error) }));
}
