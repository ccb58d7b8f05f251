import type { Boundary } from "../../boundary.js";
import type { Issue } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log, Scope } from "../scope.js";
import type { ConnectionDecision, Sandbox } from "./sandbox.js";

/** The APIs of model providers. `openai` means both Responses and Chat Completions. */
export type ModelProtocol = "anthropic" | "openai" | "gemini" | "bedrock" | "vertex";

/** How one request's agent uses its model. Holds credentials: never log or return it. */
export interface ModelUse {
  readonly protocol: ModelProtocol;
  /** The base URL of the real endpoint, in the form that the agent's own setting takes. */
  readonly endpoint: string;
  /** The segment of the API's path that the base URL includes: `/v1` if the agent appends `/messages`. May be empty. */
  readonly basePath: string;
  /** The credentials' values by the names of their variables. Empty for an endpoint without authentication. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Headers that are sent with each request to the endpoint, in addition to the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The cloud's region, where the protocol has one. */
  readonly region?: string;
  /** The run's model, by the name that the agent sends to its provider. */
  readonly model: string;
  /** Patterns (`*` for any text) of further models that the agent uses on its own, such as one that writes titles. */
  readonly auxiliaryModels: readonly string[];
}

/** The usage of one request to a model, by its provider's count. */
export interface ModelUsage {
  readonly model: string;
  /** Tokens that were sent, including cached ones. */
  readonly input: number;
  /** The part of `input` that came from the provider's cache. */
  readonly cached: number;
  /** The part of `input` that was written to the provider's cache. Default: 0. */
  readonly cacheWritten?: number;
  /** Tokens that the model generated, including its reasoning. */
  readonly output: number;
  /** The part of `output` that the model spent on reasoning. Default: 0. */
  readonly reasoning?: number;
  /** The price in US dollars. Absent for a model without a price. */
  readonly cost?: number;
}

/** The failure of a request to the model. */
export interface ModelFailure {
  /** The provider's HTTP status; absent where there was no response. */
  readonly status?: number;
  readonly retryable: boolean;
  /** Whether the agent may have taken a part of an answer for the whole. Default: no. */
  readonly isPartial?: boolean;
  /** One sentence, without a credential. */
  readonly message: string;
}

/** Whether a request may go to the model. */
export type ModelAdmission =
  | { readonly allowed: true }
  /** `status` is that of the response to the agent: 402, 403 or 429. */
  | { readonly allowed: false; readonly status: number; readonly reason: string };

/** Reports on one request to the model. Calls may come in any order, and none after `ended`. */
export interface ModelExchange {
  /** Reports the usage since the last call: a stream reports its tokens in pieces. */
  used(usage: ModelUsage): void;
  /**
   * Reports that the response is complete, or that the request failed. Called once.
   * @param stopReason set if the model ended its answer at the limit of the answer's length.
   */
  ended(failure?: ModelFailure, stopReason?: "max_tokens"): void;
}

export interface ModelGatewayScope extends Scope {
  /** A gateway needs only this part of the sandbox: it makes the gateway reachable from inside. */
  readonly sandbox: Pick<Sandbox, "expose">;
  /** The hosts that the run may reach: a gateway must not let a provider's own tools reach others. */
  readonly boundary: Pick<Boundary, "network">;
  /**
   * Decides whether a request may be sent; the gateway calls it before each. It may take as long as a user takes to answer.
   * Rejects when `signal` aborts.
   *
   * @param max the most that the request may use, which counts against a budget until it has ended. Default: nothing.
   */
  admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission>;
  /** Called when an admitted request is sent. @param max the same value as in `admit`. */
  begin(model: string, max?: ModelUsage): ModelExchange;
  /** Called for each request, sent or refused, including repeats. */
  onDecision(decision: ConnectionDecision): void;
  readonly log: Log;
}

/** The address and key by which the agent reaches its model from inside the sandbox. */
export interface ModelRoute {
  /** The base URL, which includes the use's `basePath`: `http://127.0.0.1:41234/v1`. */
  readonly baseUrl: string;
  /** The agent's API key, which is valid only for this route and while it is open. */
  readonly key: string;
}

/** Carries an agent's requests to its model, so that neither the credential nor a connection is needed inside. */
export interface ModelGateway extends Actor<ModelUse> {
  /** The reasons why the gateway can't carry this use; empty if it can. Pure. */
  issues(use: ModelUse): readonly Issue[];
  /** The models of this use, or patterns of models, that the gateway has no price for. Pure. */
  unpriced(use: ModelUse): readonly string[];
  open(use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute>;
}
