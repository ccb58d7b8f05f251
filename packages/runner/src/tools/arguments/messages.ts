/** One check, as the worker gets it. Texts, because they cross between threads without being walked. */
export interface CheckRequest {
  /** The tool's name. */
  readonly tool: string;
  /** Its JSON Schema, as JSON. */
  readonly schema: string;
  /** The arguments, as JSON. */
  readonly given: string;
}

/** What the worker replies. */
export interface CheckReply {
  /** Undefined: the arguments fit. */
  readonly problem: string | undefined;
}
