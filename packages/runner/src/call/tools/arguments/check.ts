import type { JsonObject } from "@ambit/core/contract";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import { patternEngine } from "./patterns.js";

const options: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  logger: false,
  code: { regExp: patternEngine },
};

/** JSON Schema's own schema takes 20 ms to compile, and is the same for every run. */
const checkers: { latest?: Ajv2020; older?: Ajv } = {};

/** Compiled schemas that are kept. */
const maxCompiled = 64;
/** Problems that are reported for one call. */
const maxReportedProblems = 20;
/** The longest message, in characters. */
const maxTextLength = 4_000;

/** Checks arguments against JSON Schemas. The schema determines how long that takes, so it runs in a worker. */
export class ArgumentsCheck {
  readonly #compiled = new LRUCache<string, ValidateFunction | Error>({
    max: maxCompiled,
    memoMethod: (schema) => compile(JSON.parse(schema)),
  });

  /**
   * The problem, in words that the model can act on; undefined if there is none.
   * @param tool its name, for messages.
   * @param schema as JSON.
   * @param given arguments, as JSON.
   */
  problem(tool: string, schema: string, given: string): string | undefined {
    const validate = this.#compiled.memo(schema);
    if (validate instanceof Error) {
      const reason = validate.message.slice(0, maxTextLength);
      return `Tool '${tool}' can't be called: its inputSchema is not a valid JSON Schema (${reason}).`;
    }
    if (validate(JSON.parse(given))) return undefined;
    const errors = validate.errors ?? [];
    const missing = errors.flatMap(({ keyword, params, instancePath }) =>
      keyword === "required" ? [dotted(`${instancePath}/${String(params.missingProperty)}`)] : [],
    );
    if (missing.length > 0) {
      const names = listed(missing, ", ");
      return `Tool '${tool}' missing required argument(s): ${names}. Retry the tool call with those argument fields populated.`;
    }
    const wrong = errors.map(({ instancePath, message, params }) => {
      const extra = params.additionalProperty;
      const path = dotted(typeof extra === "string" ? `${instancePath}/${extra}` : instancePath);
      return `${path === "" ? "arguments" : path} ${message ?? "is not valid"}`;
    });
    return `Tool '${tool}' was given wrong arguments: ${listed(wrong, "; ")}. Correct them and call it again.`;
  }
}

/**
 * By the dialect that `$schema` names: 2020-12, or draft-07 and older. Without one, 2020-12 is tried
 * first, as MCP specifies; many generators write draft-07 without naming it. Each schema gets its own validator:
 * two tools may use the same `$id`, and no request may refer to the schema of another.
 */
function compile(given: JsonObject): ValidateFunction | Error {
  // An asynchronous schema returns a promise, which is always truthy.
  const { $schema: dialect, $async: _asynchronous, ...schema } = given;
  const isOlder = typeof dialect === "string" && /draft-0[3-7]/.test(dialect);
  const byOlder = () => {
    checkers.older ??= new Ajv(options);
    requireSchema(checkers.older, schema);
    return new Ajv({ ...options, validateSchema: false }).compile(schema);
  };
  const byLatest = () => {
    checkers.latest ??= new Ajv2020(options);
    requireSchema(checkers.latest, schema);
    return new Ajv2020({ ...options, validateSchema: false }).compile(schema);
  };
  try {
    return isOlder ? byOlder() : byLatest();
  } catch (error) {
    const reason = error instanceof Error ? error : new Error(String(error));
    if (isOlder || dialect !== undefined) return reason;
    try {
      return byOlder();
    } catch {
      // Valid in neither dialect: reports the newer one's error.
      return reason;
    }
  }
}

function requireSchema(checker: Ajv | Ajv2020, schema: JsonObject): void {
  if (checker.validateSchema({ ...schema }) === true) return;
  throw new Error(`schema is invalid: ${checker.errorsText(checker.errors, { dataVar: "schema" })}`);
}

function listed(texts: readonly string[], separator: string): string {
  const distinct = [...new Set(texts)];
  const more =
    distinct.length > maxReportedProblems ? [`and ${distinct.length - maxReportedProblems} more`] : [];
  return [...distinct.slice(0, maxReportedProblems), ...more].join(separator).slice(0, maxTextLength);
}

function dotted(pointer: string): string {
  return pointer
    .replace(/^\//, "")
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}
