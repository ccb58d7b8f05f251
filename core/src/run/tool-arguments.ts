import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { JsonObject, ToolSpec } from "../contract/index.js";

/** Checks arguments against a tool's JSON Schema. Compiled at a tool's first call: most tools are never called. */
export class ToolArguments {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, logger: false });
  readonly #compiled = new Map<string, ValidateFunction | Error>();

  /** What is wrong, in words the model can act on; undefined when nothing is. */
  problem(tool: ToolSpec, given: JsonObject): string | undefined {
    const validate = this.#compile(tool);
    if (validate instanceof Error) {
      return `Tool '${tool.name}' can't be called: its inputSchema is not a valid JSON Schema (${validate.message}).`;
    }
    if (validate(given)) return undefined;
    const errors = validate.errors ?? [];
    const missing = errors.flatMap(({ keyword, params, instancePath }) =>
      keyword === "required" ? [dotted(`${instancePath}/${String(params["missingProperty"])}`)] : [],
    );
    if (missing.length > 0) {
      return `Tool '${tool.name}' missing required argument(s): ${missing.join(", ")}. Retry the tool call with those argument fields populated.`;
    }
    const wrong = errors.map(({ instancePath, message, params }) => {
      const extra = params["additionalProperty"];
      const path = dotted(typeof extra === "string" ? `${instancePath}/${extra}` : instancePath);
      return `${path === "" ? "arguments" : path} ${message ?? "is not valid"}`;
    });
    return `Tool '${tool.name}' was given wrong arguments: ${[...new Set(wrong)].join("; ")}. Correct them and call it again.`;
  }

  #compile(tool: ToolSpec): ValidateFunction | Error {
    const known = this.#compiled.get(tool.name);
    if (known !== undefined) return known;
    let compiled: ValidateFunction | Error;
    try {
      // `$schema` and `$id` name a dialect and an identity of the author's; only one dialect is spoken here.
      const { $schema: _dialect, $id: _identity, ...schema } = tool.inputSchema;
      compiled = this.#ajv.compile(schema);
    } catch (error) {
      compiled = error instanceof Error ? error : new Error(String(error));
    }
    this.#compiled.set(tool.name, compiled);
    return compiled;
  }
}

function dotted(pointer: string): string {
  return pointer.replace(/^\//, "").replaceAll("/", ".");
}
