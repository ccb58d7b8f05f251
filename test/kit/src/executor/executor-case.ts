import type { JsonObject, runRequestSchema, toolSpecSchema } from "@ambit/core/plugin";
import type { z } from "zod";

/** Where an executor's calls can lead in a test: a server on loopback, and a folder. */
export interface ExecutorWorld {
  /** Origin of a server that answers every request as `answer` says, by default with 200 and `{}`. */
  readonly url: string;
  /** Empty, and the executor's to write in where it keeps anything on the runner. */
  readonly folder: string;
  /** Sets what the server answers from now on. `"never"`: it takes requests and answers none. */
  answer(reply: Reply | "never"): void;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One tool, one call of it, and what has to come of it. */
export interface ExecutorCase {
  readonly name: string;
  readonly tool: z.input<typeof toolSpecSchema>;
  /** What the request has to hold besides. */
  readonly request?: z.input<typeof runRequestSchema>;
  readonly arguments?: JsonObject;
  /** Called before, with the world it will be executed in. */
  readonly prepare?: (world: ExecutorWorld) => void;
  readonly status: "completed" | "failed" | "parked" | "never";
  /** The output, or what it has to match. Default: any. */
  readonly output?: string | RegExp;
}
