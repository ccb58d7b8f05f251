import { isRange } from "@ambit/egress";
import { z } from "zod";

/** Where the server calls back for new values of credentials. */
export const credentialSettingsSchema = z.strictObject({
  privateHosts: z.enum(["allow", "refuse", "auto"]).default("auto").meta({
    description:
      "Whether the `refresh.url` of a credential may lead to a private or loopback address, or to one of the server's own. `auto`, the default, refuses them where the configuration has `tokens`. Link-local and metadata addresses are always refused.",
  }),
  allowedRanges: z
    .array(z.string().refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8"))
    .default([])
    .meta({ description: "Further ranges that it may lead to." }),
});
export type CredentialSettings = z.output<typeof credentialSettingsSchema>;
