import { createHash } from "node:crypto";
import { tokenFix } from "../../configuration/environment.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { newLocalToken } from "../../local-token.js";
import type { Ambit } from "../../open.js";
import type { Principal } from "../../tenants/caller.js";
import { isLoopback } from "./loopback.js";

/** Who is the operator. */
export type OperatorAccess =
  /** Who sends this token. */
  | { readonly kind: "token"; readonly token: string }
  /** The same with a token that the server made for this machine. A run could read it where it has no boundary. */
  | { readonly kind: "local"; readonly token: string }
  /** No one: every caller is a tenant. */
  | { readonly kind: "tenants" }
  /** Everyone on this machine except for processes of runs. */
  | { readonly kind: "everyone" };

/** Minimum length of a token for an address that other machines reach. */
const minTokenLength = 16;

/** Who is the operator, by the settings. @throws ConfigurationInvalid for an address that others can reach, unguarded */
export function operatorAccess({ settings, tenants }: Pick<Ambit, "settings" | "tenants">): OperatorAccess {
  const { token, server } = settings;
  const { host, auth } = server;
  const loopback = isLoopback(host);
  const reached = `${host} can be reached from other machines`;
  if (auth === "none") {
    if (token === undefined && tenants.isEmpty && loopback) return { kind: "everyone" };
    const why = loopback ? "a token is configured, and none would be required" : reached;
    throw new ConfigurationInvalid("server.auth", [`is "none", but ${why}: leave it out`]);
  }
  if (token !== undefined) {
    if (loopback || token.length >= minTokenLength) return { kind: "token", token };
    throw new ConfigurationInvalid("AMBIT_TOKEN", [
      `${reached}, and the token has fewer than ${minTokenLength} characters, which can be guessed: ${tokenFix}`,
    ]);
  }
  if (!tenants.isEmpty) return { kind: "tenants" };
  if (loopback) return { kind: "local", token: newLocalToken() };
  const fix = "set AMBIT_TOKEN to a long random value, or listen on 127.0.0.1";
  throw new ConfigurationInvalid("server.host", [`${reached}, and no token guards it: ${fix}`]);
}

/**
 * Names the token whose owner makes a page's token: with it, its pages lose their access too. Null for an operator without a
 * configured token. Undefined: there is no operator.
 */
export function issuerOf(operator: OperatorAccess): string | null | undefined {
  switch (operator.kind) {
    case "token":
      return `sha256:${createHash("sha256").update(operator.token).digest("hex")}`;
    case "local":
    case "everyone":
      return null;
    case "tenants":
      return undefined;
  }
}

/** Names the token of the one whose rules hold for a request. */
export function issuerIn(principal: Principal, operator: OperatorAccess): string | null {
  return principal.kind === "tenant" ? principal.tenant.token : (issuerOf(operator) ?? null);
}
