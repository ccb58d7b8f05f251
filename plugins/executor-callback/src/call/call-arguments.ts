import type { JsonObject, RunRequest, ToolSpec } from "@ambit/core/plugin";
import {
  isObject,
  type MutableJson,
  pathProblem,
  readPath,
  removePath,
  unsafeKeyIn,
  writePath,
} from "./json-path.js";

const token = /^\$ctx\.(.+)$/;

/** The call can't be built. The message is for the model, or for the tool's author. */
export class CallInvalid extends Error {
  override readonly name = "CallInvalid";
}

/** What `$ctx.…` reads: the request's `runContext`, with the session's id filled in as the reference does. */
export function runContextOf({ runContext, sessionId }: RunRequest): JsonObject {
  if (sessionId === undefined || sessionId.trim() === "") return runContext ?? {};
  const session = isObject(runContext?.session) ? runContext.session : {};
  return { ...runContext, session: { id: sessionId, ...session } };
}

/** What `$ctx.…` reads in one call: also `tool.call_id`, the call's idempotency key. */
export function callContextOf(request: RunRequest, idempotencyKey: string): JsonObject {
  return { ...runContextOf(request), tool: { call_id: idempotencyKey } };
}

/** What the platform gets of the model's arguments: without those meant for the reader, bound ones replaced. */
export function argumentsOf(tool: ToolSpec, input: JsonObject, context: JsonObject): JsonObject {
  const { ephemeralArgs = [], contextBindings = {} } = tool;
  const bindings = Object.entries(contextBindings);
  if (ephemeralArgs.length === 0 && bindings.length === 0) return input;
  const visible: MutableJson = {};
  for (const [name, value] of Object.entries(input)) {
    if (!ephemeralArgs.includes(name)) visible[name] = value;
  }
  if (bindings.length === 0) return visible;
  refuseUnsafe(visible);
  // Written to below: what the model sent stays as it was for events and records.
  const bound = structuredClone(visible);
  bind(bound, bindings, context);
  return bound;
}

/** Sets each bound path from the run's context, and removes any earlier value first. @throws CallInvalid */
export function bind(
  target: MutableJson,
  bindings: readonly (readonly [path: string, token: unknown])[],
  context: JsonObject,
): void {
  for (const [path, value] of bindings) {
    removePath(target, path);
    const source = typeof value === "string" ? token.exec(value)?.[1] : undefined;
    const resolved = source === undefined ? undefined : readPath(context, source);
    if (resolved === undefined) {
      throw new CallInvalid(`the run's context has no value for '${path}', which the tool binds to it`);
    }
    writePath(target, path, resolved);
  }
}

/** @throws CallInvalid when the arguments have a key that would reach a prototype once they are merged. */
export function refuseUnsafe(input: JsonObject): void {
  const unsafe = unsafeKeyIn(input);
  if (unsafe !== undefined) throw new CallInvalid(`the arguments must not have a key '${unsafe}'`);
}

/** Why a binding can't be used; undefined when it can. */
export function bindingProblem(path: string, value: unknown): string | undefined {
  const problem = pathProblem(path);
  if (problem !== undefined) return problem;
  const source = typeof value === "string" ? token.exec(value)?.[1] : undefined;
  if (source === undefined) return `'${path}' must be bound to "$ctx.<path in runContext>"`;
  return pathProblem(source);
}
