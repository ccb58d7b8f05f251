/** One request to the platform. */
export interface Posting {
  readonly url: URL;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came back, read within bounds. */
export type CallbackResponse =
  | { readonly kind: "answered"; readonly body: string }
  /** Not 2xx. The body, as far as it was read, is for the log; of it the model gets its `advice` alone. */
  | {
      readonly kind: "rejected";
      readonly status: number;
      readonly location?: string;
      readonly body: string;
    }
  /** Longer than `maxAnswerBytes`. */
  | { readonly kind: "too_long" };

/** Nothing was sent: the run may belong to another process. */
export class NotSent extends Error {}
