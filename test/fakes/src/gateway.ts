import type {
  ModelAdmission,
  ModelFailure,
  ModelGateway,
  ModelGatewayScope,
  ModelRoute,
  ModelUsage,
  ModelUse,
} from "@ambit/core/plugin";

export const fakeUse: ModelUse = {
  protocol: "openai",
  endpoint: "https://model.example/v1",
  basePath: "/v1",
  credentials: { MODEL_KEY: "sk-secret" },
  headers: {},
  model: "m-1",
  auxiliaryModels: [],
};

/** What one request to the model comes to. */
export interface FakeAnswer {
  /** Default: the run's own. */
  readonly model?: string;
  readonly usage?: Partial<ModelUsage>;
  /** Tokens that it may return at most. Default: none are counted before its answer. */
  readonly maxOutput?: number;
  readonly failure?: ModelFailure;
  readonly stopReason?: "max_tokens";
  readonly signal?: AbortSignal;
  /** Waited for before the request ends. */
  readonly until?: Promise<void>;
}

/** A gateway whose requests the test makes itself. */
export class FakeGateway implements ModelGateway {
  readonly name = "fake-route";
  readonly site = "runner";
  readonly claims = [];
  readonly opened: ModelGatewayScope[] = [];
  /** Models without a price. */
  readonly noPrice: string[] = [];

  touches(): readonly ["network"] {
    return ["network"];
  }

  gaps(): [] {
    return [];
  }

  async probe(): Promise<[]> {
    return [];
  }

  issues(): [] {
    return [];
  }

  unpriced(): readonly string[] {
    return this.noPrice;
  }

  async open(_use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute> {
    this.opened.push(scope);
    return { baseUrl: "http://127.0.0.1:1/v1", key: "route-key" };
  }

  /** One request of the agent: asked for, sent, counted and ended. */
  async call({
    model = fakeUse.model,
    usage = {},
    maxOutput,
    failure,
    stopReason,
    signal,
    until,
  }: FakeAnswer = {}): Promise<ModelAdmission> {
    const scope = this.opened.at(-1);
    if (scope === undefined) throw new Error("no route is open");
    const max = maxOutput === undefined ? undefined : { model, input: 0, cached: 0, output: maxOutput };
    const admission = await scope.admit(model, signal ?? new AbortController().signal, max);
    if (!admission.allowed) return admission;
    const exchange = scope.begin(model, max);
    if (failure === undefined) exchange.used({ model, input: 0, cached: 0, output: 0, ...usage });
    await until;
    exchange.ended(failure, stopReason);
    return admission;
  }
}
