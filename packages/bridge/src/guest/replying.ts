import { messageOf } from "@ambit/core/plugin";
import type { Channel } from "../transport/channel.js";

/** Does what a channel asks for; a failure is the reply. */
export function replying(channel: Channel, work: () => Promise<void>): void {
  work().catch((error: unknown) => channel.send({ refused: messageOf(error) }));
}
