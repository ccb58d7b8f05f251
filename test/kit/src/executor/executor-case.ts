import type { JsonObject, runRequestSchema, toolSpecSchema } from "@ambit/core/plugin";
import type { z } from "zod";

/** The targets of an executor's calls in a test: a server on loopback, and a folder. */
export interface ExecutorWorld {
  /** Origin of a server that responds to every request as set by `answer`, by default with 200 and `{}`. */
  readonly url: string;
  /** An empty folder for anything that the executor stores on the runner. */
  readonly folder: string;
  /** Sets the server's further responses. `"never"`: it accepts requests without a response. */
  answer(reply: Reply | "never"): void;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One tool, one call of it, and the expected outcome. */
export interface ExecutorCase {
  readonly name: string;
  readonly tool: z.input<typeof toolSpecSchema>;
  /** Further fields of the request. */
  readonly request?: z.input<typeof runRequestSchema>;
  readonly arguments?: JsonObject;
  /** Called before the call, with the world it will be executed in. */
  readonly prepare?: (world: ExecutorWorld) => void;
  readonly status: "completed" | "failed" | "parked" | "never";
  /** The output, or what it has to match. Default: any. */
  readonly output?: string | RegExp;
}
