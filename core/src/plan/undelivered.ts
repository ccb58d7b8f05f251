import { type Issue, type RunRequest, subscriptionPath } from "../contract/index.js";
import type { Harness } from "../plugin/index.js";
import type { GatewayChoice } from "./choose-gateway.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";

/**
 * Credentials of the request that no actor of the plan would deliver. Checked here, since an agent that silently lacks
 * one fails later, or acts as someone else. Pure.
 */
export function undeliveredIssues(
  request: RunRequest,
  harness: Harness,
  { chosen, why }: GatewayChoice,
): readonly Issue[] {
  const { gatewayCredentials, subscription } = request.modelConnection ?? {};
  const { sandboxCredentials = [] } = request;
  const issues: Issue[] = [];
  if (gatewayCredentials !== undefined && chosen?.use.headers[gatewayCredentials.header] === undefined) {
    const reason = why ?? `${harness.id}'s requests to a model go through no model gateway`;
    const message = `can't be added to the model's requests (${reason}): load @ambit/model-route and use an agent that it carries`;
    issues.push({ path: "modelConnection.gatewayCredentials", message });
  }
  if (sandboxCredentials.length === 0 && subscription === undefined) return issues;
  const delivered = new Set(
    callPure(harness, "visibleCredentials", pluginReturns.names, () => harness.visibleCredentials(request)),
  );
  if (subscription !== undefined && !delivered.has(subscriptionPath)) {
    const message = `is a login, which ${harness.id} doesn't pass on to its agent: use harness "pi", or send an API key in modelConnection.credentials`;
    issues.push({ path: subscriptionPath, message });
  }
  for (const [index, { binding }] of sandboxCredentials.entries()) {
    if (delivered.has(binding.name)) continue;
    const message = `${harness.id} doesn't pass it on to its agent: leave it out, or use another harness`;
    issues.push({ path: `sandboxCredentials[${index}]`, message });
  }
  return issues;
}
