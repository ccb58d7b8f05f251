import { type Issue, type RunRequest, subscriptionPath } from "@ambit/core/plugin";
import { z } from "zod";
import type { Profile } from "../profile.js";

/** Minutes that a login must still be valid: Pi renews one that has less than five. */
const minMinutes = 10;

const subscriptionSchema = z.object({
  id: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/),
  provider: z.literal("chatgpt"),
  login: z.object({
    type: z.literal("oauth"),
    access: z.string().min(1),
    /** Milliseconds since 1970. */
    expires: z.int().positive().max(8_640_000_000_000_000),
    accountId: z.string().min(1).optional(),
  }),
});
type Login = z.infer<typeof subscriptionSchema>["login"];

/**
 * The login of a request, as an agent may have it: without the token that renews it. A renewed login can't be given back
 * to the platform, and the stored one would be dead. Pure.
 */
export function loginOf({ modelConnection }: RunRequest): Login | undefined {
  return subscriptionSchema.safeParse(modelConnection?.subscription).data?.login;
}

/** Why an agent can't use the request's login. Pure. */
export function subscriptionIssues(
  { title, takesSubscription = false }: Profile,
  { modelConnection }: RunRequest,
  now: number,
): readonly Issue[] {
  const given = modelConnection?.subscription;
  // An agent that takes none doesn't deliver it, which the plan refuses.
  if (given === undefined || !takesSubscription) return [];
  const issue = (path: string, message: string) => [{ path: `${subscriptionPath}${path}`, message }];
  const parsed = subscriptionSchema.safeParse(given);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    const path = first === undefined ? "" : first.path.map((key) => `.${String(key)}`).join("");
    return issue(
      path,
      `must be a login for ChatGPT, as the platform stores it: ${first?.message ?? "it isn't"}`,
    );
  }
  if (modelConnection?.credentialMode !== "runtime_provided")
    return issue("", 'is for credentialMode "runtime_provided": name that, or send credentials alone');
  const { expires } = parsed.data.login;
  if (expires - now >= minMinutes * 60_000) return [];
  const when = `${expires > now ? "expires" : "expired"} at ${new Date(expires).toISOString()}`;
  return issue(
    ".login.expires",
    `${when}: ${title} would renew the login, and Ambit can't give the renewed one back. Have the platform renew it, and send one that is valid for ${minMinutes} minutes`,
  );
}
