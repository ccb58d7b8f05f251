import { randomBytes } from "node:crypto";
import type { LostRun } from "@ambit/core/plugin";
import { z } from "zod";
import type { ExportDestination } from "../destination.js";
import { type EndedSpan, Span } from "./span.js";

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));

/** What another process needs to end a run's span. */
const recoverySchema = z.object({
  traceId: hex(32),
  spanId: hex(16),
  flags: z.number(),
  tracestate: z.string().optional(),
  /** The caller's span. */
  parentId: hex(16).optional(),
  name: z.string(),
  /** Milliseconds since 1970. */
  start: z.number(),
  attributes: z.record(
    z.string(),
    z.union([z.string(), z.number(), z.boolean(), z.array(z.string()).readonly()]),
  ),
  /** Of the request, with its credentials. Absent: the operator's. */
  destination: z.object({ url: z.string(), headers: z.record(z.string(), z.string()) }).optional(),
});
export type Recovery = z.infer<typeof recoverySchema>;

/** Attributes that may be long are left out. */
const maxAttributeLength = 256;

/** At the run's beginning. Pure. */
export function recoveryOf(root: Span, destination: ExportDestination): string {
  const { traceId, flags, tracestate, parent, name } = root.given;
  const attributes = Object.entries(root.attributes).filter(
    ([, value]) => JSON.stringify(value).length <= maxAttributeLength,
  );
  const isCallers = destination !== "environment" && destination.isCallers;
  return JSON.stringify({
    traceId,
    spanId: root.spanId,
    flags,
    tracestate,
    parentId: parent?.spanId,
    name,
    start: root.start,
    attributes: Object.fromEntries(attributes),
    ...(isCallers ? { destination: { url: destination.url, headers: destination.headers } } : {}),
  } satisfies z.input<typeof recoverySchema>);
}

/** Undefined for what an earlier version, or another program, wrote. Pure. */
export function readRecovery(text: string): Recovery | undefined {
  try {
    return recoverySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Of a run of which nothing is stored. */
export function newRecovery(
  { harness, sandbox, begunAt }: LostRun,
  trace: Pick<Recovery, "traceId" | "flags">,
): Recovery {
  return {
    ...trace,
    spanId: randomBytes(8).toString("hex"),
    name: `invoke_agent ${harness}`,
    start: begunAt,
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": harness,
      "ambit.sandbox": sandbox,
    },
  };
}

/** The span of a run whose process died. */
export function lostRun(
  { runId }: LostRun,
  { traceId, spanId, flags, tracestate, parentId, name, start, attributes }: Recovery,
  now: () => number = Date.now,
): EndedSpan {
  const span = new Span(
    {
      traceId,
      flags,
      tracestate,
      name,
      parent: parentId === undefined ? undefined : { spanId: parentId, isRemote: true },
      attributes: { ...attributes, "ambit.run.id": runId, "gen_ai.response.finish_reasons": ["error"] },
      spanId,
      start,
    },
    now,
  );
  span.failed("runner_lost", "The process that had the run ended before it.");
  return span.end();
}
