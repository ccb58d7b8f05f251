import { z } from "zod";
import {
  environmentNameSchema,
  environmentSchema,
  environmentValueSchema,
} from "../../values/environment.js";
import { headerNameSchema, headersSchema, headerValueSchema, httpUrlSchema } from "../../values/http.js";
import { jsonObjectSchema } from "../../values/json.js";
import { secret } from "../../values/secret.js";

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
      "A login that the agent would renew. Refused: Ambit can't give the renewed one back to the platform, and the stored one would be dead. Send an API key in `credentials`.",
  }),
  customConnection: z.boolean().optional().meta({
    effect: "informational",
    description:
      "Whether the model is served by the user's own endpoint: the platform's prices then don't apply.",
  }),
  protocol: z.string().optional().meta({
    effect: "informational",
    description: "A further API that the endpoint offers.",
  }),
});
export type ModelConnection = z.infer<typeof modelConnectionSchema>;
