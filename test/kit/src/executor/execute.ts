import { freshNonce } from "@ambit/attacks";
import { normaliseBoundary, runRequestSchema, sandboxPermissionSchema } from "@ambit/core";
import {
  type Boundary,
  type Domain,
  type ToolExecutor,
  type ToolOutcome,
  type ToolUse,
  toolSpecSchema,
} from "@ambit/core/plugin";
import type { z } from "zod";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import type { ExecutorCase } from "./executor-case.js";
import { deepFrozen } from "./frozen.js";
import { CallObservation } from "./observe.js";
import type { OpenWorld } from "./world.js";

/** More than any call of a test takes: the suite's own limit catches an executor that ignores its signal. */
const timeoutMs = 60_000;

export function boundaryOf(permission: z.input<typeof sandboxPermissionSchema>): Boundary {
  return deepFrozen(normaliseBoundary(sandboxPermissionSchema.parse(permission)).boundary);
}

/** The tool and its request, frozen: changing them throws. */
export function useOf({ tool, request }: ExecutorCase): ToolUse {
  const spec = toolSpecSchema.parse(tool);
  const messages = [{ role: "user" as const, content: "hello" }];
  const whole = runRequestSchema.parse({
    messages,
    ...request,
    customTools: [tool, ...(request?.customTools ?? [])],
  });
  return deepFrozen({ tool: spec, request: whole });
}

export interface ExecuteOptions {
  /** Default: nothing is restricted. */
  readonly boundary?: Boundary;
  readonly signal?: AbortSignal;
}

export interface Executed {
  readonly outcome: ToolOutcome;
  readonly observed: ReadonlySet<Domain>;
}

/** Executes one call like a run, and observes where it acts. */
export async function executeCase(
  executor: ToolExecutor,
  one: ExecutorCase,
  world: OpenWorld,
  { boundary = boundaryOf({}), signal = new AbortController().signal }: ExecuteOptions = {},
): Promise<Executed> {
  const use = useOf(one);
  one.prepare?.(world);
  const before = world.requests();
  const observation = new CallObservation(world.folder);
  const scope = new KitScope();
  try {
    const outcome = await executor.execute(
      deepFrozen({ id: freshNonce(), tool: use.tool, arguments: one.arguments ?? {} }),
      {
        runId: freshNonce(),
        request: use.request,
        boundary,
        sandbox: observation.through(world.sandbox),
        signal,
        timeoutMs,
        idempotencyKey: freshNonce(),
        mayAct: () => true,
        defer: (close) => scope.defer(close),
        log: silentLog,
      },
    );
    if (world.requests() > before) observation.domains.add("network");
    return { outcome, observed: observation.end() };
  } finally {
    await scope.close();
    observation.end();
  }
}
