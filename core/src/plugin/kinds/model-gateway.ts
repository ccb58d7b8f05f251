import type { Boundary } from "../../boundary/index.js";
import type { Issue } from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log } from "../log.js";
import type { Scope } from "../scope.js";
import type { ConnectionDecision, Sandbox } from "./sandbox.js";

/** The APIs of model providers. `openai` is both Responses and Chat Completions. */
export type ModelProtocol = "anthropic" | "openai" | "gemini" | "bedrock" | "vertex";

/** How one request's agent uses its model. Holds credentials: never log or return it. */
export interface ModelUse {
  readonly protocol: ModelProtocol;
  /** Base URL of the real endpoint, as the agent would be given it. */
  readonly endpoint: string;
  /** The part of the API's path that the base URL includes: `/v1` where the agent appends `/messages`. Empty or one segment. */
  readonly basePath: string;
  /** Values by the names of their variables. Empty for an endpoint that asks for none. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Sent with each request to the endpoint, in addition to the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** The cloud's region, where the protocol has one. */
  readonly region?: string;
  /** The model that the run is for, as the agent names it to its provider. */
  readonly model: string;
  /** Patterns (`*` for any text) of further models that the agent asks for by itself, such as one that finds titles. */
  readonly auxiliaryModels: readonly string[];
}

/** What one request to a model used, as its provider counts it. */
export interface ModelUsage {
  readonly model: string;
  /** Tokens sent, cached ones among them. */
  readonly input: number;
  /** Those of `input` that the provider had in its cache. */
  readonly cached: number;
  readonly output: number;
  /** US dollars. Absent for a model without a price. */
  readonly cost?: number;
}

/** How a request to the model failed. */
export interface ModelFailure {
  /** The provider's HTTP status; absent where there was no response. */
  readonly status?: number;
  readonly retryable: boolean;
  /** One sentence, without a credential. */
  readonly message: string;
}

/** Whether a request may go to the model. */
export type ModelAdmission =
  | { readonly allowed: true }
  /** `status` of the response to the agent: 402 or 403. */
  | { readonly allowed: false; readonly status: number; readonly reason: string };

/** Reports on one request to the model. Calls may come in any order, and none after `ended`. */
export interface ModelExchange {
  /** What was used since the last call: a stream reports its tokens piece by piece. */
  used(usage: ModelUsage): void;
  /** The model answered in full; or how it failed. Called once. */
  ended(failure?: ModelFailure): void;
}

export interface ModelGatewayScope extends Scope {
  /** Of the sandbox, what a gateway needs: the way in. */
  readonly sandbox: Pick<Sandbox, "expose">;
  /** What the run may reach: a gateway doesn't have a provider reach further. */
  readonly boundary: Pick<Boundary, "network">;
  /** Asked before each request is sent; may take as long as a user takes to answer. Rejects when `signal` aborts. */
  admit(model: string, signal: AbortSignal): Promise<ModelAdmission>;
  /** A request that was admitted is sent. */
  begin(model: string): ModelExchange;
  /** Called for each request, sent or refused; repeats included. */
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
  /** Why it can't carry this use; empty when it can. Pure. */
  issues(use: ModelUse): readonly Issue[];
  /** Models of this use, or patterns of models, that it has no price for. Pure. */
  unpriced(use: ModelUse): readonly string[];
  open(use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute>;
}
