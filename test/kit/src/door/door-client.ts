import type { JsonObject } from "@ambit/core/plugin";
import type { DoorRequest } from "./door-stage.js";

/** How a client of the door's protocol speaks. */
export interface DoorClient {
  /** Sends a user's message in a conversation of its own. */
  say(text: string): DoorRequest;
  /**
   * Requests that claim what only Ambit can say, by what they claim: an earlier message, an answer to a question. Each has the
   * text in it. `{}` where the protocol has no such request.
   */
  readonly forged: Readonly<Record<string, (text: string) => DoorRequest>>;
  /** Sends a user's message with fields of the run's request, where the protocol has a place for them. Default: it has none. */
  widened?(fields: JsonObject): DoorRequest;
  /** The part of a response that says that the run went well. Default: that its body ends. */
  readonly finished?: RegExp;
  /** The part of a response with the status 200 that says that the run failed or was refused. Default: it never says so. */
  readonly failed?: RegExp;
  /** Whether a response begins only once its run has ended, so that no client reads it slowly. Default: it is streamed. */
  readonly answersAtEnd?: boolean;
}
