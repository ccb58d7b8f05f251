import { outcomeOf, type RunResult } from "@ambit/core/contract";
import { pieceEnd } from "@ambit/core/plugin";
import type { RunEnd } from "./store/index.js";
import { aboutEnd, type MessageSource } from "./webhooks/messages.js";
import type { RunSummary } from "./wire/stored.js";

/** Characters of what a summary quotes, and of a name in it. */
const maxExcerpt = 200;
const maxName = 128;

/** What is written when a run has ended with this result, which has no events. */
export function runEnd(source: MessageSource, { events: _, ...result }: RunResult): RunEnd {
  const { model, usage } = result;
  return {
    result: JSON.stringify({ ...result, events: [] }),
    outcome: outcomeOf(result),
    summary: JSON.stringify(summarised(result)),
    session: result.sessionId,
    delivery: aboutEnd(source, { ...result, events: [] }),
    usd: usage?.cost ?? 0,
    inputTokens: usage?.input ?? 0,
    outputTokens: usage?.output ?? 0,
    model: model === undefined ? undefined : beginning(model, maxName),
  };
}

/** Pure. */
function summarised(result: Omit<RunResult, "events">): RunSummary {
  const { stopReason, failure, error, output = "", model, usage, receipt } = result;
  return {
    stopReason: stopReason === undefined ? undefined : beginning(stopReason, maxName),
    failure: failure?.code,
    excerpt: error === undefined ? ending(output, maxExcerpt) : beginning(error, maxExcerpt),
    model: model === undefined ? undefined : beginning(model, maxName),
    usage,
    receipt: receipt && {
      confinement: receipt.confinement,
      required: receipt.required,
      accepted: [...new Set(receipt.accepted.map(({ capability }) => capability))],
    },
  };
}

const beginning = (text: string, length: number) =>
  text.length <= length ? text : text.slice(0, pieceEnd(text, length));

/** Without half a character at its begin. */
const ending = (text: string, length: number) => text.slice(-length).replace(/^[\uDC00-\uDFFF]/, "");
