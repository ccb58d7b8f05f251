import { codeOf, type Issue, type Webhook } from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import type { WebhookPost, WebhookResponse, WebhookSender } from "@ambit/durable";
import {
  type AddressPolicy,
  AddressRefused,
  operatorPolicy,
  resolvePrivateHosts,
  whyForbidden,
  whyUrlForbidden,
} from "@ambit/egress";
import { openResponse } from "@ambit/egress/client";
import { version } from "../version.js";
import type { WebhookSettings } from "./settings.js";

/** A project whose webhooks have secrets of their own. */
interface WebhookOwner {
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
    readonly tenants: readonly WebhookOwner[],
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
    const headers = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": this.#userAgent,
      ...(await signatures({ id, body }, secrets, new Date())),
    };
    const signal = AbortSignal.any([closing, AbortSignal.timeout(this.timeoutMs)]);
    return post({ url, headers, body }, this.#policy, signal, this.upstreamProxy);
  }

  #isOfTenant(project: string | undefined): boolean {
    return this.tenants.some((tenant) => tenant.project === project);
  }

  /** If a project has several tokens, the first one with a secret counts. */
  #secretsOf(project: string | undefined): readonly string[] {
    const owners = this.tenants.filter((tenant) => tenant.project === project);
    if (owners.length === 0) return this.settings.secret ?? [];
    return owners.find(({ webhookSecret }) => webhookSecret !== undefined)?.webhookSecret ?? [];
  }
}

const noStore =
  "needs a store, which isn't open here: load @ambit/store-sqlite or @ambit/store-postgres, and send the request to `ambit serve`";
const noSecret =
  "needs a secret that signs it: set AMBIT_WEBHOOK_SECRET, or webhooks.secret in the configuration";
const noTenantSecret =
  "needs a secret that signs it: set webhookSecret next to the project's token in the configuration";

/** Bytes of a receiver's response that are read: only its status counts. */
const maxResponseBytes = 16 * 1_024;
/** Seconds in `Retry-After` that count, or a date. */
const seconds = /^\d{1,6}$/;

interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Posts once, over a separate connection, to an address that was checked. Redirects are not followed: they would lead
 * to another address than the caller named. Never rejects.
 */
export async function post(
  { url, headers, body }: Post,
  policy: AddressPolicy,
  signal: AbortSignal,
  upstreamProxy?: UpstreamProxy,
): Promise<WebhookResponse> {
  const whyClosed = (address: string, port: number) => whyForbidden([policy], address, port);
  try {
    const guard = { whyClosed, upstreamProxy };
    const response = await openResponse({ method: "POST", url, headers, body }, guard, signal);
    await readToEnd(response);
    signal.throwIfAborted();
    return answerOf(response.statusCode ?? 0, response.headers["retry-after"]);
  } catch (error) {
    if (error instanceof AddressRefused) return refused;
    if (signal.aborted) return { delivered: false, error: "no answer in time" };
    const code = codeOf(error);
    return { delivered: false, error: `could not be reached${code === undefined ? "" : ` (${code})`}` };
  }
}

const refused: WebhookResponse = {
  delivered: false,
  error: "the server's operator refuses its address",
  isFinal: true,
};

/** As far as a response is read. Its status has already arrived, so a connection that breaks now doesn't matter. */
async function readToEnd(response: AsyncIterable<Buffer>): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response) {
      size += chunk.length;
      if (size > maxResponseBytes) return;
    }
  } catch {}
}

function answerOf(status: number, retryAfter: string | undefined): WebhookResponse {
  if (status >= 200 && status < 300) return { delivered: true, status };
  const redirects = status >= 300 && status < 400;
  return {
    delivered: false,
    status,
    error: redirects ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`,
    // 410 Gone: the receiver doesn't want further attempts.
    isFinal: status === 410,
    ...(retryAfter === undefined || !seconds.test(retryAfter)
      ? {}
      : { retryAfterMs: Number(retryAfter) * 1_000 }),
  };
}

/** The headers of the Standard Webhooks specification: one signature for each secret. */
async function signatures(
  { id, body }: Pick<WebhookPost, "id" | "body">,
  secrets: readonly string[],
  now: Date,
): Promise<Record<string, string>> {
  // Most servers send no webhook, and start sooner without it.
  const { default: standard } = await import("standardwebhooks");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
    "webhook-signature": secrets.map((secret) => new standard.Webhook(secret).sign(id, now, body)).join(" "),
  };
}
