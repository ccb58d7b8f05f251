import { createRequire } from "node:module";
import type { Ajv, ValidateFunction } from "ajv";
import type { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject, ToolSpec } from "../contract/index.js";

const options = { strict: false, allErrors: true, validateFormats: false, logger: false } as const;
/** The schema itself is checked before, by one validator for the whole process. */
const bare = { ...options, validateSchema: false } as const;

// Ajv takes tens of milliseconds to load: the first tool call waits for it, not the server's start. Required and not
// imported, because a check that waits would let the turn end between a call and its check.
const require = createRequire(import.meta.url);
function older(settings: typeof bare | typeof options): Ajv {
  const ajv: typeof import("ajv") = require("ajv");
  return new ajv.Ajv(settings);
}
function latest(settings: typeof bare | typeof options): Ajv2020 {
  const ajv: typeof import("ajv/dist/2020.js") = require("ajv/dist/2020.js");
  return new ajv.Ajv2020(settings);
}

/** JSON Schema's own schema takes 20 ms to compile, and is the same for every run. */
const checkers: { latest?: Ajv2020; older?: Ajv } = {};

function requireSchema(checker: Ajv | Ajv2020, schema: JsonObject): void {
  if (checker.validateSchema({ ...schema }) === true) return;
  throw new Error(`schema is invalid: ${checker.errorsText(checker.errors, { dataVar: "schema" })}`);
}

/** Checks arguments against a tool's JSON Schema. Compiled at a tool's first call: most tools are never called. */
export class ToolArguments {
  readonly #compiled = new Map<string, ValidateFunction | Error>();
  #latest: Ajv2020 | undefined;
  #draft07: Ajv | undefined;

  /** What is wrong, in words the model can act on; undefined when nothing is. */
  problem(tool: ToolSpec, given: JsonObject): string | undefined {
    const validate = this.#validator(tool);
    if (validate instanceof Error) {
      return `Tool '${tool.name}' can't be called: its inputSchema is not a valid JSON Schema (${validate.message}).`;
    }
    if (validate(given)) return undefined;
    const errors = validate.errors ?? [];
    const missing = errors.flatMap(({ keyword, params, instancePath }) =>
      keyword === "required" ? [dotted(`${instancePath}/${String(params.missingProperty)}`)] : [],
    );
    if (missing.length > 0) {
      const names = [...new Set(missing)].join(", ");
      return `Tool '${tool.name}' missing required argument(s): ${names}. Retry the tool call with those argument fields populated.`;
    }
    const wrong = errors.map(({ instancePath, message, params }) => {
      const extra = params.additionalProperty;
      const path = dotted(typeof extra === "string" ? `${instancePath}/${extra}` : instancePath);
      return `${path === "" ? "arguments" : path} ${message ?? "is not valid"}`;
    });
    return `Tool '${tool.name}' was given wrong arguments: ${[...new Set(wrong)].join("; ")}. Correct them and call it again.`;
  }

  #validator(tool: ToolSpec): ValidateFunction | Error {
    const known = this.#compiled.get(tool.name);
    if (known !== undefined) return known;
    const compiled = this.#compile(tool.inputSchema);
    this.#compiled.set(tool.name, compiled);
    return compiled;
  }

  /**
   * By the dialect that `$schema` names: 2020-12, or draft-07 and what came before it. Without one, 2020-12 is tried
   * first, as MCP has it; many a generator writes draft-07 and doesn't say so.
   */
  #compile(given: JsonObject): ValidateFunction | Error {
    // An asynchronous schema answers with a promise, and a promise is always true.
    const { $schema: dialect, $async: _asynchronous, ...schema } = given;
    const isOlder = typeof dialect === "string" && /draft-0[3-7]/.test(dialect);
    // A schema with an identity gets a validator of its own: two tools may well claim the same one.
    const isShared = !JSON.stringify(schema).includes('"$id"');
    const byOlder = () => {
      checkers.older ??= older(options);
      requireSchema(checkers.older, schema);
      return (isShared ? this.#sharedOlder() : older(bare)).compile(schema);
    };
    const byLatest = () => {
      checkers.latest ??= latest(options);
      requireSchema(checkers.latest, schema);
      return (isShared ? this.#sharedLatest() : latest(bare)).compile(schema);
    };
    try {
      return isOlder ? byOlder() : byLatest();
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      if (isOlder || dialect !== undefined) return reason;
      try {
        return byOlder();
      } catch {
        // In neither dialect: what the newer one says of it is told.
        return reason;
      }
    }
  }

  #sharedLatest(): Ajv2020 {
    this.#latest ??= latest(bare);
    return this.#latest;
  }

  #sharedOlder(): Ajv {
    this.#draft07 ??= older(bare);
    return this.#draft07;
  }
}

function dotted(pointer: string): string {
  return pointer
    .replace(/^\//, "")
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}
