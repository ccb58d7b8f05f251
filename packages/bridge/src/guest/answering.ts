import { messageOf } from "@ambit/core/plugin";
import type { Channel } from "../transport/channel.js";

/** Does what a channel asks for; a failure is the answer. */
export function answering(channel: Channel, work: () => Promise<void>): void {
  work().catch((error: unknown) => channel.send({ refused: messageOf(error) }));
}
