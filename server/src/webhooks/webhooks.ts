import type { Issue, Webhook } from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import type { WebhookPost, WebhookResponse, WebhookSender } from "@ambit/durable";
import { type AddressPolicy, operatorPolicy, resolvePrivateHosts, whyUrlForbidden } from "@ambit/egress";
import { version } from "../version.js";
import { post } from "./post.js";
import type { WebhookSettings } from "./settings.js";

/** A project whose webhooks have secrets of their own. */
interface Signer {
  readonly project: string;
  readonly webhookSecret?: readonly string[] | undefined;
}

/** Signs webhooks and posts them: with the secret of a run's project where that has tokens, else the operator's. */
export class Webhooks implements WebhookSender {
  /** Whether a store is open: messages wait there. */
  hasStore = false;
  readonly #policy: AddressPolicy;
  readonly #userAgent = `ambit/${version()}`;

  constructor(
    readonly settings: WebhookSettings,
    readonly tenants: readonly Signer[],
    readonly upstreamProxy?: UpstreamProxy,
  ) {
    this.#policy = operatorPolicy(resolvePrivateHosts(settings, tenants.length > 0));
  }

  get isConfigured(): boolean {
    return [this.settings.secret, ...this.tenants.map(({ webhookSecret }) => webhookSecret)].some(
      (secrets) => secrets !== undefined,
    );
  }

  get attempts(): number {
    return this.settings.attempts;
  }

  get retryMs(): number {
    return this.settings.retryMs;
  }

  get timeoutMs(): number {
    return this.settings.timeoutMs;
  }

  /** Why a run of this project can't have this webhook, by path within it. */
  issues({ url }: Webhook, project: string | undefined): readonly Issue[] {
    if (!this.hasStore) return [{ path: "", message: noStore }];
    const issues: Issue[] = [];
    if (this.#secretsOf(project).length === 0)
      issues.push({ path: "", message: this.#isOfTenant(project) ? noTenantSecret : noSecret });
    const reason = whyUrlForbidden([this.#policy], new URL(url));
    if (reason !== undefined) issues.push({ path: "url", message: `is refused: ${reason}` });
    return issues;
  }

  async send({ id, url, body, project }: WebhookPost, closing: AbortSignal): Promise<WebhookResponse> {
    const secrets = this.#secretsOf(project);
    if (secrets.length === 0) return { delivered: false, error: "the server has no secret to sign it with" };
    const { signed } = await import("./signature.js");
    const headers = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": this.#userAgent,
      ...signed({ id, body }, secrets, new Date()),
    };
    const signal = AbortSignal.any([closing, AbortSignal.timeout(this.timeoutMs)]);
    return post({ url, headers, body }, this.#policy, signal, this.upstreamProxy);
  }

  #isOfTenant(project: string | undefined): boolean {
    return this.tenants.some((tenant) => tenant.project === project);
  }

  /** If a project has several tokens, the first one with a secret counts. */
  #secretsOf(project: string | undefined): readonly string[] {
    const own = this.tenants.filter((tenant) => tenant.project === project);
    if (own.length === 0) return this.settings.secret ?? [];
    return own.find(({ webhookSecret }) => webhookSecret !== undefined)?.webhookSecret ?? [];
  }
}

const noStore =
  "needs a store, which isn't open here: load @ambit/store-sqlite or @ambit/store-postgres, and send the request to `ambit serve`";
const noSecret =
  "needs a secret that signs it: set AMBIT_WEBHOOK_SECRET, or webhooks.secret in the configuration";
const noTenantSecret =
  "needs a secret that signs it: set webhookSecret next to the project's token in the configuration";
