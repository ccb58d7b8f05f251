/** One check, as the worker gets it. Strings, because they pass between threads without a deep copy. */
export interface CheckRequest {
  /** The tool's name. */
  readonly tool: string;
  /** Its JSON Schema, as JSON. */
  readonly schema: string;
  /** The arguments, as JSON. */
  readonly given: string;
}

/** The worker's reply. */
export interface CheckReply {
  /** Undefined if the arguments are valid. */
  readonly problem: string | undefined;
}
