import { type Issue, projectOf, type RunRequest, type Webhook } from "@ambit/core/contract";
import { type CredentialRefreshService, noCredentialRefresh } from "../operator.js";

/** The callbacks for new values of credentials that can't be made from here. */
export function refreshIssues(
  { credentials }: RunRequest,
  service: CredentialRefreshService = noCredentialRefresh,
): readonly Issue[] {
  return credentials.flatMap(({ refresh }, index) => {
    const reason = refresh === undefined ? undefined : service.whyRefused(new URL(refresh.url));
    const path = `credentials[${index}].refresh.url`;
    return reason === undefined ? [] : [{ path, message: `is refused: ${reason}` }];
  });
}

/** The webhook that can't be sent from here. */
export function issuesOfWebhook(
  request: RunRequest,
  issuesOf: (webhook: Webhook, project: string | undefined) => readonly Issue[] = sendsNone,
): Issue[] {
  const { webhook } = request;
  if (webhook === undefined) return [];
  return issuesOf(webhook, projectOf(request)).map(({ path, message }) => ({
    path: path === "" ? "webhook" : `webhook.${path}`,
    message,
  }));
}

const sendsNone = (): readonly Issue[] => [
  {
    path: "",
    message: "can't be sent from here: send the request to a server (`ambit serve`) that has a store",
  },
];
