import type { AgentEvent } from "@ambit/core/contract";
import { TurnRecord } from "./turn-record.js";

/**
 * A run's events as its result carries them: each text and thought in one piece.
 * @param most characters, as `limits.resultCharacters`.
 */
export async function coalesced(
  events: AsyncIterable<AgentEvent>,
  max: number,
): Promise<readonly AgentEvent[]> {
  const record = new TurnRecord(true, max);
  for await (const event of events) record.add(event);
  return record.events;
}
