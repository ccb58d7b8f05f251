import type { IncomingMessage } from "node:http";
import { ApiError } from "../http/api-error.js";
import { readJson } from "../http/json.js";

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A JSON body whose fields are read one by one, without a schema library, which the daemon would have to load. */
export class Body {
  readonly #fields: Record<string, unknown>;

  private constructor(fields: Record<string, unknown>) {
    this.#fields = fields;
  }

  static async of(request: IncomingMessage): Promise<Body> {
    const value = await readJson(request);
    if (!isRecord(value)) throw new ApiError(400, "invalid request body", "INVALID_REQUEST_BODY");
    return new Body(value);
  }

  text(name: string): string | undefined {
    return this.#read(name, (value) => typeof value === "string");
  }

  number(name: string): number | undefined {
    return this.#read(name, (value) => typeof value === "number");
  }

  flag(name: string): boolean {
    return this.#read(name, (value) => typeof value === "boolean") ?? false;
  }

  /** A map of names to texts; empty if the field is absent. */
  texts(name: string): Record<string, string> {
    const value = this.#read(name, isRecord) ?? {};
    const texts: Record<string, string> = {};
    for (const [key, entry] of Object.entries(value)) {
      if (typeof entry !== "string") throw this.#invalid(name);
      texts[key] = entry;
    }
    return texts;
  }

  #read<Value>(name: string, fits: (value: unknown) => value is Value): Value | undefined {
    const value = this.#fields[name];
    if (value === undefined || value === null) return undefined;
    if (!fits(value)) throw this.#invalid(name);
    return value;
  }

  #invalid(name: string): ApiError {
    return new ApiError(400, `invalid request body: ${name}`, "INVALID_REQUEST_BODY");
  }
}
