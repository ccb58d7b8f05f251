import { request as httpRequest, type IncomingMessage } from "node:http";
import { freshSecret } from "@ambit/attacks";
import type {
  ConnectionDecision,
  ModelAdmission,
  ModelFailure,
  ModelGateway,
  ModelRoute,
  ModelUsage,
} from "@ambit/core/plugin";
import { BareSandbox } from "../control/bare-sandbox.js";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { type KitApi, kitModel, useOf } from "./apis.js";
import { json, KitUpstream } from "./kit-upstream.js";

export interface SendOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default: the route's key, in the API's header. Null: none. */
  readonly key?: string | null;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** One gateway between a simulated agent and a simulated endpoint. */
export class GatewayStage {
  readonly scope = new KitScope();
  readonly decisions: ConnectionDecision[] = [];
  readonly usage: ModelUsage[] = [];
  /** How each request ended, in order; undefined for a successful one. */
  readonly ends: (ModelFailure | undefined)[] = [];
  /** The run's decision on the next request. */
  admission: ModelAdmission = { allowed: true };

  private constructor(
    readonly api: KitApi,
    readonly key: string,
    readonly upstream: KitUpstream,
    readonly sandbox: BareSandbox,
  ) {}

  route: ModelRoute = { baseUrl: "", key: "" };

  static async open(gateway: ModelGateway, api: KitApi): Promise<GatewayStage> {
    const upstream = await KitUpstream.open((response) => json(response, 200, api.answer));
    const sandbox = await BareSandbox.open({ user: undefined, confinement: "unconfined", env: {} });
    const stage = new GatewayStage(api, freshSecret(), upstream, sandbox);
    stage.route = await gateway.open(useOf(api, upstream.origin, stage.key), {
      sandbox,
      log: silentLog,
      signal: stage.scope.signal,
      boundary: { network: { mode: "off", rules: [] } },
      defer: (close) => stage.scope.defer(close),
      admit: async () => stage.admission,
      begin: () => ({
        used: (usage) => void stage.usage.push(usage),
        ended: (failure) => void stage.ends.push(failure),
      }),
      onDecision: (decision) => void stage.decisions.push(decision),
    });
    return stage;
  }

  /** The usage that was reported to the run. */
  get used(): Pick<ModelUsage, "input" | "cached" | "output"> {
    const sum = (name: "input" | "cached" | "output") => this.usage.reduce((all, one) => all + one[name], 0);
    return { input: sum("input"), cached: sum("cached"), output: sum("output") };
  }

  get refused(): readonly ConnectionDecision[] {
    return this.decisions.filter(({ allowed }) => !allowed);
  }

  /** Sends a request like the agent, byte for byte: no client in between corrects a path or a header. */
  async begin(options: SendOptions = {}): Promise<IncomingMessage> {
    const { api, route } = this;
    const { method = "POST", path = api.path, key = route.key } = options;
    const body = options.body ?? (method === "GET" ? "" : api.body(kitModel));
    const [name, prefix] = api.keyHeader;
    const { hostname, port } = new URL(route.baseUrl);
    return await new Promise((resolve, reject) => {
      const sending = httpRequest(
        {
          hostname,
          port,
          method,
          path,
          agent: false,
          headers: {
            "content-type": "application/json",
            ...(key === null ? {} : { [name]: `${prefix}${key}` }),
            ...options.headers,
          },
        },
        resolve,
      );
      sending.on("error", reject);
      sending.end(body);
    });
  }

  async send(options: SendOptions = {}): Promise<Received> {
    const response = await this.begin(options);
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: Buffer.concat(parts).toString(),
    };
  }

  async close(): Promise<void> {
    try {
      await this.scope.close();
    } finally {
      await this.sandbox.close();
      await this.upstream[Symbol.asyncDispose]();
    }
  }
}
