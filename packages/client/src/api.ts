import type { components } from "./contract.js";

/** What the server's OpenAPI document names. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

export type RunRequest = Schema<"RunRequest">;
export type RunResult = Schema<"RunResult">;
export type FailedResult = Schema<"FailedResult">;
export type AgentEvent = Schema<"AgentEvent">;
export type StreamRecord = Schema<"StreamRecord">;
/** An event, with the time at which it happened: absent for one that an earlier version of the server stored. */
export type EventRecord = Extract<StreamRecord, { kind: "event" }>;
export type InteractionAnswer = Schema<"InteractionAnswer">;

/** A question of the run to its user. */
export type InteractionRequest = Extract<AgentEvent, { type: "interaction_request" }>;
export type InteractionKind = InteractionRequest["kind"];
