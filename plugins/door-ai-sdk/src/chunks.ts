/**
 * The chunks of the AI SDK's UI message stream, version 1, that this door sends. Its clients end a chat for a chunk that they
 * don't know, and for a part that another chunk should have begun.
 */
export type Chunk =
  | { readonly type: "start"; readonly messageId: string; readonly messageMetadata?: Metadata }
  | { readonly type: "start-step" | "finish-step" }
  | { readonly type: "finish"; readonly finishReason: FinishReason; readonly messageMetadata?: Metadata }
  | { readonly type: "abort"; readonly reason?: string }
  | { readonly type: "error"; readonly errorText: string }
  | { readonly type: "text-start" | "text-end" | "reasoning-end"; readonly id: string }
  | {
      readonly type: "reasoning-start";
      readonly id: string;
      readonly providerMetadata?: { readonly ambit: Json };
    }
  | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
  | {
      readonly type: "tool-input-available";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly providerExecuted?: true;
      readonly dynamic?: true;
      readonly toolMetadata?: Json;
    }
  | {
      readonly type: "tool-approval-request";
      readonly approvalId: string;
      readonly toolCallId: string;
      readonly reason?: string;
      readonly isAutomatic?: true;
    }
  | {
      readonly type: "tool-approval-response";
      readonly approvalId: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | {
      readonly type: "tool-output-available";
      readonly toolCallId: string;
      readonly output: unknown;
      readonly preliminary?: true;
      readonly toolMetadata?: Json;
    }
  | { readonly type: "tool-output-error"; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: "tool-output-denied"; readonly toolCallId: string }
  | {
      readonly type: "file";
      readonly url: string;
      readonly mediaType: string;
      readonly providerMetadata?: { readonly ambit: Json };
    }
  | {
      readonly type: `data-${string}`;
      readonly id?: string;
      readonly data: unknown;
      readonly transient?: true;
    };

export type Json = Readonly<Record<string, unknown>>;

export type FinishReason =
  | "stop"
  | "length"
  | "content-filter"
  | "tool-calls"
  | "error"
  | "interrupted"
  | "other";

/** What the message's `metadata` has. Of a message that several runs wrote: the latest one. */
export interface Metadata {
  readonly runId: string;
  readonly model?: string;
  readonly usage?: {
    readonly inputTokens?: number;
    readonly cachedInputTokens?: number;
    readonly outputTokens?: number;
    readonly reasoningTokens?: number;
    readonly totalTokens?: number;
  };
}

export const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
} as const;
