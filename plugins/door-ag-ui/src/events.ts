/**
 * The events of AG-UI 1.0 that this door sends. Its clients end a run for one that comes before `RUN_STARTED`, for one after
 * `RUN_FINISHED`, for a `null`, and for a message, call or thought that is open at the end.
 */
export type AgUiEvent =
  | {
      readonly type: "RUN_STARTED";
      readonly threadId: string;
      readonly runId: string;
      readonly protocolVersion: "1.0";
    }
  | {
      readonly type: "RUN_FINISHED";
      readonly threadId: string;
      readonly runId: string;
      readonly outcome: Outcome;
      readonly result?: Json;
      readonly usage?: readonly Usage[];
    }
  | {
      readonly type: "RUN_ERROR";
      readonly message: string;
      readonly code?: string;
      readonly usage?: readonly Usage[];
    }
  | { readonly type: "TEXT_MESSAGE_START"; readonly messageId: string; readonly role: "assistant" }
  | { readonly type: "TEXT_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "TEXT_MESSAGE_END"; readonly messageId: string }
  | {
      readonly type: "REASONING_START" | "REASONING_END" | "REASONING_MESSAGE_END";
      readonly messageId: string;
    }
  | { readonly type: "REASONING_MESSAGE_START"; readonly messageId: string; readonly role: "reasoning" }
  | { readonly type: "REASONING_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | {
      readonly type: "TOOL_CALL_START";
      readonly toolCallId: string;
      readonly toolCallName: string;
      readonly metadata?: Json;
    }
  | { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_END"; readonly toolCallId: string }
  | {
      readonly type: "TOOL_CALL_RESULT";
      readonly messageId: string;
      readonly toolCallId: string;
      readonly role: "tool";
      readonly content: string;
      readonly metadata?: Json;
    }
  | { readonly type: "STATE_SNAPSHOT"; readonly snapshot: Json }
  | { readonly type: "STATE_DELTA"; readonly delta: readonly Json[] }
  | { readonly type: "CUSTOM"; readonly name: string; readonly value: unknown };

export type Outcome =
  | { readonly type: "success"; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: "interrupt"; readonly interrupts: readonly Interrupt[] }
  | { readonly type: "cancelled" };

/** A question that the next run's `resume` answers. */
export interface Interrupt {
  /** The question's id: `ask_…`. */
  readonly id: string;
  /** `tool_call`: the user decides whether it is made. `input_required`: the user gets a form or page. */
  readonly reason: "tool_call" | "input_required";
  readonly message: string;
  readonly toolCallId?: string;
  readonly responseSchema: Json;
  readonly expiresAt?: string;
  readonly metadata?: Json;
}

export interface Usage {
  readonly model?: string;
  readonly inputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly outputTokens?: number;
  readonly reasoningTokens?: number;
  readonly totalTokens?: number;
}

export type Json = Readonly<Record<string, unknown>>;
