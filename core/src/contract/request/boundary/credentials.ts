import { z } from "zod";
import { headerNameSchema, httpUrlSchema } from "../../values/http.js";
import { environmentNameSchema, environmentValueSchema } from "../../values/names.js";
import { secret } from "../../values/secret.js";
import { limits } from "../limits.js";

/** Headers that frame or route a message: a credential in one would change the request itself. */
const reservedHeaders =
  /^(host|connection|content-.*|expect|te|trailer|transfer-encoding|upgrade|proxy-.*)$/i;

/** Names by which a machine means itself. */
const localNames = /^(?:.+\.)?localhost(?:\.localdomain)?(?::\d+)?$/;

/** How a request carries a credential: `Authorization: Bearer`, the password of `Authorization: Basic`, or another header. */
export const credentialFormSchema = z.union([
  z.enum(["bearer", "basic"]),
  z.strictObject({
    header: headerNameSchema
      .refine((name) => !reservedHeaders.test(name), {
        error: "must not be a header that frames or routes the request",
      })
      .meta({ description: "The header's name." }),
  }),
]);
export type CredentialForm = z.infer<typeof credentialFormSchema>;

/** What git asks a server for (gitprotocol-http; git-lfs docs/api). */
const gitServiceSchema = z.enum(["fetch", "push", "lfs"]);
export type GitService = z.infer<typeof gitServiceSchema>;

const credentialValueSchema = secret(
  z
    .string()
    // Shorter values occur in any text, so removing them from a response would garble it.
    .min(8)
    .max(limits.credentialCharacters)
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, "must be printable ASCII: a header carries it"),
  "password",
);

/** A time by RFC 3339: ISO 8601 with seconds, and `Z` or an offset. */
const expirySchema = z.iso.datetime({
  offset: true,
  error: "must be a time such as 2026-01-31T12:00:00Z, or with an offset",
});

/** The most characters of a callback's address. */
const maxUrlLength = 2_048;

const credentialRefreshSchema = z.strictObject({
  url: secret(httpUrlSchema.max(maxUrlLength), "address").meta({
    description:
      "Where the runner asks for a new value, with `POST`. An https URL; http only at a private address that the server's operator allows. Redirects are not followed.",
  }),
  authorization: secret(
    z
      .string()
      .min(1)
      .max(limits.credentialCharacters)
      .regex(/^[\x20-\x7e]*$/, "must be printable ASCII: a header carries it"),
    "authorization",
  )
    .optional()
    .meta({ description: "Sent to `url` verbatim as the `Authorization` header. Default: none is sent." }),
  expiresAt: expirySchema.optional().meta({
    description:
      "When the given `value` expires (ISO 8601): it isn't sent from then on. Default: unknown, and a new value is asked for before the first use.",
  }),
});

/** What a platform responds with when a credential's `refresh.url` is called. Further fields are ignored. */
export const refreshedCredentialSchema = z.object({
  value: credentialValueSchema,
  expiresAt: expirySchema,
});

/**
 * A credential that stays outside the sandbox. Inside, the variable `name` holds a placeholder, which the egress proxy
 * replaces on the way to one of `hosts`.
 */
export const credentialSchema = z.strictObject({
  name: environmentNameSchema
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name: letters, digits and _")
    .meta({ description: "The agent's variable that holds the placeholder." }),
  value: credentialValueSchema.meta({
    description: `The secret: 8 to ${limits.credentialCharacters.toLocaleString("en")} characters of printable ASCII. As \`basic\`: the password, or \`user:password\`.`,
  }),
  hosts: z
    .array(
      z
        .string()
        .toLowerCase()
        .regex(
          /^(?=.{1,253}(?::|$))(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?::[1-9]\d{0,4})?$/,
          "must be a host name, with an optional :port (default 443); no address, scheme, path or wildcard",
        )
        .refine((host) => !localNames.test(host), {
          error:
            "must not be localhost: in the sandbox that is the sandbox itself, and no proxy puts the credential into what is sent there",
        }),
    )
    .min(1)
    .max(limits.credentialHosts)
    .meta({
      description:
        "Names that it may be sent to, over TLS, each with an optional `:port` (default 443). The network's allowlist must include them.",
    }),
  as: credentialFormSchema.meta({
    description:
      "`bearer` or `basic` (in `Authorization`), or `{header}`: a header that holds only the value. It is replaced nowhere else.",
  }),
  methods: z
    .array(z.string().regex(/^[A-Z]{1,20}$/, "must be an HTTP method in capitals"))
    .min(1)
    .max(32)
    .optional()
    .meta({ description: "The only HTTP methods that it is used with. Default: all." }),
  paths: z
    .array(
      z
        .string()
        .max(2_048)
        .regex(
          /^\/(?:[A-Za-z0-9._~!$&'()+,=:@/-]|%2[Ff])*\*?$/,
          "must be a path that begins with /, with a * at its end only, and without ? or % (except %2F)",
        ),
    )
    .min(1)
    .max(limits.credentialPaths)
    .optional()
    .meta({
      description:
        "The only paths that it is used with: exact, or `/prefix/*`. A `%2F` matches only itself. Where `access` lists git's services, an exact path is a repository's, and all below it. Default: all.",
    }),
  access: z
    .union([z.enum(["read", "write"]), z.array(gitServiceSchema).min(1).max(gitServiceSchema.options.length)])
    .default("write")
    .meta({
      description:
        "`read`: only requests that read (GET, HEAD, OPTIONS, git fetch); a git push is refused. `write`, the default: all. A list of git's services: only these, and no other request: `fetch`, `push`, and `lfs` for the contents that those download or upload.",
    }),
  refresh: credentialRefreshSchema.optional().meta({
    description:
      "For a value that expires during the run: the runner asks the platform for a new one before it puts the credential on a request. Default: the value is used as long as the session lives.",
  }),
});
export type Credential = z.infer<typeof credentialSchema>;

/** A credential that is used once, soon after the run begins. */
export const setupCredentialSchema = credentialSchema.omit({ refresh: true });

/** A credential that the agent and its commands can read: a variable of the agent's process. */
export const sandboxCredentialSchema = z.strictObject({
  binding: z
    .strictObject({
      kind: z.literal("environment").meta({ description: "`environment`." }),
      name: environmentNameSchema
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name: letters, digits and _")
        .meta({ description: "The variable's name; unique, and none that the agent or the runner sets." }),
    })
    .meta({ description: "Where the value goes." }),
  value: secret(environmentValueSchema.min(1, "must not be empty").max(limits.credentialCharacters)).meta({
    description: "The secret, without NUL.",
  }),
});
