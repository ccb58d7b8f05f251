import type { Boundary } from "../../boundary.js";
import type { Issue } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log, Scope } from "../scope.js";
import type { ConnectionDecision, Sandbox } from "./sandbox.js";

/** The APIs of model providers. `openai` is both Responses and Chat Completions. */
export type ModelProtocol = "anthropic" | "openai" | "gemini" | "bedrock" | "vertex";

/** How one request's agent uses its model. Holds credentials: never log or return it. */
export interface ModelUse {
  readonly protocol: ModelProtocol;
  /** Base URL of the real endpoint, as the agent would be given it. */
  readonly endpoint: string;
  /** The segment of the API's path that the base URL includes: `/v1` if the agent appends `/messages`. May be empty. */
  readonly basePath: string;
  /** Values by the names of their variables. Empty for an endpoint without authentication. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Sent with each request to the endpoint, in addition to the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The cloud's region, where the protocol has one. */
  readonly region?: string;
  /** The model that the run is for, as the agent names it to its provider. */
  readonly model: string;
  /** Patterns (`*` for any text) of further models that the agent uses on its own, such as one that writes titles. */
  readonly auxiliaryModels: readonly string[];
}

/** The usage of one request to a model, as its provider counts it. */
export interface ModelUsage {
  readonly model: string;
  /** Tokens sent, including cached ones. */
  readonly input: number;
  /** The part of `input` that came from the provider's cache. */
  readonly cached: number;
  /** The part of `input` that was written to the provider's cache. Default: 0. */
  readonly cacheWritten?: number;
  /** Tokens that the model generated, including its reasoning. */
  readonly output: number;
  /** The part of `output` that the model spent on reasoning. Default: 0. */
  readonly reasoning?: number;
  /** US dollars. Absent for a model without a price. */
  readonly cost?: number;
}

/** How a request to the model failed. */
export interface ModelFailure {
  /** The provider's HTTP status; absent where there was no response. */
  readonly status?: number;
  readonly retryable: boolean;
  /** Whether the agent got a part of an answer as if it were the whole: it may take it for one. Default: no. */
  readonly isPartial?: boolean;
  /** One sentence, without a credential. */
  readonly message: string;
}

/** Whether a request may go to the model. */
export type ModelAdmission =
  | { readonly allowed: true }
  /** `status` of the response to the agent: 402, 403 or 429. */
  | { readonly allowed: false; readonly status: number; readonly reason: string };

/** Reports on one request to the model. Calls may come in any order, and none after `ended`. */
export interface ModelExchange {
  /** The usage since the last call: a stream reports its tokens in pieces. */
  used(usage: ModelUsage): void;
  /**
   * The response is complete, or the request failed. Called once.
   * @param stopReason why the model ended its answer, where that was the limit of the answer's length.
   */
  ended(failure?: ModelFailure, stopReason?: "max_tokens"): void;
}

export interface ModelGatewayScope extends Scope {
  /** The part of the sandbox that a gateway needs: the way in. */
  readonly sandbox: Pick<Sandbox, "expose">;
  /** What the run may reach: a gateway must not let a provider's own tools reach further. */
  readonly boundary: Pick<Boundary, "network">;
  /**
   * Asked before each request is sent; may take as long as a user takes to answer. Rejects when `signal` aborts.
   *
   * @param max what the request may use, which counts against a budget until the request has ended. Default: nothing.
   */
  admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission>;
  /** A request that was admitted is sent. @param max as it was admitted. */
  begin(model: string, max?: ModelUsage): ModelExchange;
  /** Called for each request, sent or refused, including repeats. */
  onDecision(decision: ConnectionDecision): void;
  readonly log: Log;
}

/** Where the agent finds its model, inside the sandbox. */
export interface ModelRoute {
  /** Base URL, with the use's `basePath`: `http://127.0.0.1:41234/v1`. */
  readonly baseUrl: string;
  /** Used as the API key: valid for this route only, as long as it is open. */
  readonly key: string;
}

/** Carries an agent's requests to its model, so that neither the credential nor a connection is needed inside. */
export interface ModelGateway extends Actor<ModelUse> {
  /** Why it can't carry this use; empty if it can. Pure. */
  issues(use: ModelUse): readonly Issue[];
  /** Models of this use, or patterns of models, that it has no price for. Pure. */
  unpriced(use: ModelUse): readonly string[];
  open(use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute>;
}
