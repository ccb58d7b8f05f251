import { isJsonObject, type JsonObject, type ToolSpec } from "@ambit/core/contract";
import { pathBeyondDepth } from "../../../parse/depth.js";
import type { ArgumentsChecker } from "./checker.js";

/** Characters of a tool's schema, as JSON. */
const maxSchemaLength = 262_144;
/** Characters of a call's arguments, as JSON. */
const maxArgumentsLength = 4_194_304;
/** Checks of one run that may time out; after that, no more are started. */
const maxTimeouts = 3;

/** Checks the arguments of one run's calls, with limits on size and time. */
export class ToolArguments {
  readonly #schemas = new Map<string, string>();
  #givenUp = 0;

  constructor(private readonly checker: ArgumentsChecker) {}

  /** The problem, in words that the model can act on; undefined if there is none. */
  async problem(tool: ToolSpec, given: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    if (!needsCheck(tool)) return undefined;
    const schema = this.#schemaOf(tool);
    if (schema.length > maxSchemaLength) {
      return `Tool '${tool.name}' can't be called: its inputSchema has more than ${count(maxSchemaLength)} characters.`;
    }
    const text = JSON.stringify(withoutEphemeral(tool, given));
    if (text.length > maxArgumentsLength) {
      return `Tool '${tool.name}' was given arguments of more than ${count(maxArgumentsLength)} characters. Send less.`;
    }
    if (this.#givenUp >= maxTimeouts) {
      return `Tool '${tool.name}' can't be called: checks of arguments took too long ${maxTimeouts} times in this run.`;
    }
    const checked = await this.checker
      .check(this, { tool: tool.name, schema, given: text }, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return { problem: `Tool '${tool.name}' wasn't called: the call was given up.` };
        throw error;
      });
    if (!("gaveUp" in checked)) return checked.problem;
    if (checked.gaveUp === "full")
      return `Tool '${tool.name}' wasn't called: too many calls of this run wait for their check. Call it again later.`;
    this.#givenUp += 1;
    const what = checked.gaveUp === "time" ? `longer than ${this.checker.checkMs} ms` : "too much memory";
    return `Tool '${tool.name}' wasn't called: checking these arguments against its inputSchema took ${what}. Send less.`;
  }

  #schemaOf(tool: ToolSpec): string {
    const known = this.#schemas.get(tool.name);
    if (known !== undefined) return known;
    const schema = JSON.stringify(schemaWithoutEphemeral(tool));
    this.#schemas.set(tool.name, schema);
    return schema;
  }
}

/** What is meant for the user alone is checked against nothing: the model may leave it out, or write it as it likes. */
function withoutEphemeral({ ephemeralArgs = [] }: ToolSpec, given: JsonObject): JsonObject {
  if (ephemeralArgs.length === 0) return given;
  const hidden = new Set(ephemeralArgs);
  return Object.fromEntries(Object.entries(given).filter(([name]) => !hidden.has(name)));
}

function schemaWithoutEphemeral({ inputSchema, ephemeralArgs = [] }: ToolSpec): JsonObject {
  const { required } = inputSchema;
  if (ephemeralArgs.length === 0 || !Array.isArray(required)) return inputSchema;
  const hidden = new Set<unknown>(ephemeralArgs);
  return { ...inputSchema, required: required.filter((name: unknown) => !hidden.has(name)) };
}

/** Whether a tool's schema requires more than an object, which is the default. */
export function needsCheck({ inputSchema: { type, properties, ...more } }: ToolSpec): boolean {
  const describes = isJsonObject(properties) && Object.keys(properties).length > 0;
  return type !== "object" || describes || Object.keys(more).length > 0;
}

/** Why arguments can't be handled, checked before anything traverses them; undefined if they can. */
export function unusableArguments(name: string, given: unknown): string | undefined {
  if (pathBeyondDepth(given) === undefined) return undefined;
  return `Tool '${name}' was given arguments with too many levels of lists and objects within each other. Send fewer.`;
}

function count(characters: number): string {
  return characters.toLocaleString("en");
}
