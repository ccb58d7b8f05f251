import { codeOf } from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import {
  type AddressPolicy,
  AddressRefused,
  literalAddress,
  operatorPolicy,
  portOf,
  resolvePrivateHosts,
  whyClosed,
  whyForbidden,
} from "@ambit/egress";
import { exchange } from "@ambit/egress/client";
import { type CredentialRefreshService, RefreshFailed } from "@ambit/runner";
import type { CredentialSettings } from "../configuration/schema.js";
import { version } from "../version.js";

/** Bytes of a response: a value has 4,096 characters at most. */
const maxBytes = 16 * 1_024;

/** Asks platforms for new values of credentials. The server calls, not the run: no boundary confines it. */
export class CredentialCallbacks implements CredentialRefreshService {
  readonly #policy: AddressPolicy;
  readonly #upstreamProxy: UpstreamProxy | undefined;
  readonly #userAgent = `ambit/${version()}`;

  constructor(settings: CredentialSettings, hasTenants: boolean, upstreamProxy?: UpstreamProxy) {
    this.#upstreamProxy = upstreamProxy;
    this.#policy = operatorPolicy(resolvePrivateHosts(settings, hasTenants));
  }

  whyRefused(url: URL): string | undefined {
    const address = literalAddress(url);
    return address === undefined ? undefined : this.#whyClosed(url, address);
  }

  async ask(
    { url, authorization, body }: Parameters<CredentialRefreshService["ask"]>[0],
    signal: AbortSignal,
  ): ReturnType<CredentialRefreshService["ask"]> {
    const headers = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      accept: "application/json",
      "user-agent": this.#userAgent,
      ...(authorization === undefined ? {} : { authorization }),
    };
    const guard = {
      whyClosed: (address: string) => this.#whyClosed(url, address),
      upstreamProxy: this.#upstreamProxy,
    };
    try {
      return await exchange({ method: "POST", url, headers, body }, guard, { maxBytes, signal });
    } catch (cause) {
      signal.throwIfAborted();
      throw new RefreshFailed(whyFailed(cause), { cause });
    }
  }

  #whyClosed(url: URL, address: string): string | undefined {
    const forbidden = whyForbidden([this.#policy], address, portOf(url));
    if (forbidden !== undefined || url.protocol === "https:") return forbidden;
    // The new value would be readable on every network on the way.
    const isPublic = whyClosed(address, []) === undefined;
    return isPublic ? `${address} is public, and the value would be sent unencrypted: use https` : undefined;
  }
}

function whyFailed(error: unknown): string {
  if (error instanceof AddressRefused) return "has an address that is refused";
  const code = codeOf(error);
  return code === undefined ? "could not be read" : `could not be reached (${code})`;
}
