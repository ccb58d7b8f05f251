import { z } from "zod";
import { headerNameSchema, headersSchema, headerValueSchema, httpUrlSchema } from "../values/http.js";
import { jsonObjectSchema } from "../values/json.js";
import { environmentNameSchema, environmentSchema, environmentValueSchema } from "../values/names.js";
import { secret } from "../values/secret.js";

const endpointSchema = z.strictObject({
  baseUrl: secret(httpUrlSchema, "url")
    .optional()
    .meta({ description: "An http(s) URL. Default: the provider's own." }),
  apiVersion: z.string().optional().meta({ description: "The API version, where a deployment has several." }),
  region: z.string().optional().meta({ description: "The region, where a deployment has several." }),
  headers: secret(headersSchema, "headers")
    .optional()
    .meta({ description: "Headers to send, where the agent can." }),
});

const credentialSchema = z.strictObject({
  binding: z
    .strictObject({
      kind: z.literal("environment").meta({ description: "`environment`." }),
      name: environmentNameSchema.meta({ description: "The variable's name, without `=` and NUL." }),
    })
    .meta({ description: "Where the value goes." }),
  value: secret(environmentValueSchema).meta({ description: "The secret, without NUL." }),
  usage: z.enum(["opaque_http", "local_use"]).default("opaque_http").meta({
    description:
      "`opaque_http`, the default: only the provider reads it · `local_use`: a program inside signs with it.",
  }),
});

const gatewayCredentialsSchema = z.strictObject({
  header: headerNameSchema.meta({ description: "The header's name." }),
  value: secret(headerValueSchema.min(1, "must not be empty"), "authorization").meta({
    description: "The secret; one line.",
  }),
});

/** The path of a subscription's login in a request; also its name among the credentials that an agent can read. */
export const subscriptionPath = "modelConnection.subscription";

/** How the agent reaches its model, and with which credential. */
export const modelConnectionSchema = z.strictObject({
  provider: z.string().optional().meta({
    description: "The issuer of the credential: `anthropic`, `openai`, `google`, …",
  }),
  deployment: z.string().optional().meta({
    description: "How the provider is reached, where an agent distinguishes.",
  }),
  endpoint: endpointSchema.optional().meta({
    description: "The model's address. A destination of the run: a restricted network must list it.",
  }),
  credentialMode: z.enum(["env", "runtime_provided", "none"]).default("env").meta({
    description: "`env`, the default: `credentials` · `runtime_provided`: the agent's own login · `none`.",
  }),
  environment: environmentSchema.optional().meta({
    description: "Variables of the agent's process that are not secret.",
  }),
  credentials: z.array(credentialSchema).default([]).meta({ description: "The credentials. Default: none." }),
  gatewayCredentials: gatewayCredentialsSchema.optional().meta({
    description:
      "A secret header of every request to the model, in addition to `credentials`. It stays outside the sandbox: without a model gateway that adds it, the run is refused.",
  }),
  subscription: secret(jsonObjectSchema, "login").optional().meta({
    description:
      'A login for ChatGPT, for Pi, with `credentialMode: "runtime_provided"`. It is in a file of the sandbox, and the receipt names it: under `sandboxPermission.secrets: "hidden"` the run is refused. The token that renews it stays outside, since a renewed login can\'t be given back to the platform; so one that isn\'t valid for 10 more minutes is refused.',
  }),
});
export type ModelConnection = z.infer<typeof modelConnectionSchema>;

/** How much a model reasons before it answers, from not at all to its maximum. */
export const reasoningEffortSchema = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
export type ReasoningEffort = z.infer<typeof reasoningEffortSchema>;

const dollars = z.number().positive();
const count = z.int().positive();

const amounts = {
  usd: dollars.optional().meta({
    description:
      "US dollars, by the prices in the model gateway's configuration. Every model of the run needs one.",
  }),
  tokens: count.optional().meta({ description: "Tokens, in and out, including cached ones." }),
  requests: count.optional().meta({ description: "Requests to the model that generate an answer." }),
};

const hasAmount = (spending: object) => Object.keys(amounts).some((name) => name in spending);
const needsAmount = "must limit something: usd, tokens or requests";

/** The amounts that a budget can limit. */
export const budgetAmountsSchema = z.strictObject(amounts).refine(hasAmount, needsAmount);
export type BudgetAmounts = z.infer<typeof budgetAmountsSchema>;

/** The most that a run may use of its model, by the provider's count. */
export const budgetSchema = z
  .strictObject({
    ...amounts,
    session: budgetAmountsSchema.optional().meta({
      description:
        "The same for all runs of the session together. The runner remembers it for a day after the session's last run.",
    }),
    onExceeded: z.enum(["fail", "ask"]).default("fail").meta({
      description:
        "`fail`: the run ends with `budget_exceeded` once more than that was used. `ask`: before the next request to the model the user is asked, as for an approval, and each yes grants the same amount again.",
    }),
  })
  .refine((spending) => hasAmount(spending) || spending.session !== undefined, needsAmount);
export type Budget = z.infer<typeof budgetSchema>;
