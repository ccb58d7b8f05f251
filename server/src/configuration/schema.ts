import { pluginEntriesSchema, probeSettingsSchema } from "@ambit/core";
import { memorySettingsSchema, storeSettingsSchema } from "@ambit/durable";
import { isRange } from "@ambit/egress";
import { contractSettingsSchema, minimumBoundarySchema, runLimitsSchema } from "@ambit/runner";
import { workspaceSettingsSchema } from "@ambit/workspace";
import { z } from "zod";
import { denialSchema, tenantsSchema } from "../tenants/schema.js";
import { webhookSettingsSchema } from "../webhooks/settings.js";
import { egressSettingsSchema } from "./egress-settings.js";

/** Where ports inside sandboxes are reached: a listener of its own, never the API's, with an origin for each port. */
export const previewSettingsSchema = z
  .strictObject({
    host: z.string().min(1).default("127.0.0.1").meta({
      description: "Where the listener of previews listens. Any address but a loopback one needs `url`.",
    }),
    port: z.int().min(0).max(65_535).optional().meta({
      description:
        "The port of previews: requests may then have `ports`. 0 selects a free one. Default: none, and such a request is refused.",
    }),
    url: z
      .string()
      .regex(/^https?:\/\/\*(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+(?::[0-9]{1,5})?$/, {
        error: 'must be a wildcard origin, such as "https://*.preview.example.com"',
      })
      .optional()
      .meta({
        description:
          "The wildcard origin under which callers reach that listener, such as `https://*.preview.example.com`: each port has a name of its own below it. Use a domain that serves nothing else. Default: `http://*.localhost:<port>`.",
      }),
    ttlMs: z.int().min(1_000).max(86_400_000).default(3_600_000).meta({
      description:
        "Milliseconds that a preview's URL and its connections last; the next run makes a new URL.",
    }),
    frameAncestors: z
      .array(
        z.string().regex(/^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/, {
          error: 'must be an origin, such as "https://app.example.com"',
        }),
      )
      .max(32)
      .default([])
      .meta({
        description:
          "Origins whose pages may show a preview in a frame, such as `https://app.example.com`. Default: none, a preview's own pages only.",
      }),
    maxConnections: z.int().min(1).max(128).default(64).meta({
      description: "Requests and WebSockets of one preview at a time; beyond that, 503.",
    }),
    idleMs: z.int().min(1_000).max(86_400_000).default(120_000).meta({
      description: "Milliseconds without a byte in either direction, after which a connection ends.",
    }),
  })
  .refine(({ url, port }) => url === undefined || port !== undefined, {
    path: ["port"],
    error: "is needed beside `url`: without it there are no previews",
  });
export type PreviewSettings = z.output<typeof previewSettingsSchema>;

/** Terminals in the sandboxes of kept sessions, for people. */
export const terminalSettingsSchema = z.strictObject({
  enabled: z.boolean().default(false).meta({
    description:
      "Whether callers may open a terminal in a session between its runs: a shell with the session's boundary, whose commands no permission and no tool policy decides. For the operator's token, and tenants' in their own sessions; in the console, for the role `operator`.",
  }),
  maxTerminals: z.int().min(1).max(1_000).default(16).meta({
    description: "Open terminals of this replica; beyond that, 429. A session has one at a time.",
  }),
  maxPerProject: z
    .int()
    .min(1)
    .max(1_000)
    .default(4)
    .meta({ description: "Open terminals of one project; beyond that, 429." }),
  idleTimeoutMs: z.int().min(1_000).max(86_400_000).default(1_800_000).meta({
    description:
      "Milliseconds without anything typed, after which a terminal ends: while it is open, the session's runs wait.",
  }),
});
export type TerminalSettings = z.output<typeof terminalSettingsSchema>;

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

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
const logLevelSchema = z.enum(logLevels);
export type LogLevel = z.infer<typeof logLevelSchema>;

export const authModes = ["token", "none"] as const;

/** As a browser sends it: a scheme, a host and a port that isn't the scheme's own, and nothing else. */
const originSchema = z.string().refine(isOrigin, {
  error: ({ input }) =>
    `must be an exact origin, such as ${originLike(String(input)) ?? "https://app.example.com"}: a scheme, a host and a port, without a wildcard, a path or a final slash`,
});

function isOrigin(text: string): boolean {
  return originLike(text) === text;
}

/** The origin of a URL of the web; undefined for anything else. */
function originLike(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, hostname } = new URL(text);
  return /^https?:$/.test(protocol) && !hostname.includes("*") ? origin : undefined;
}

const serverSchema = z.strictObject({
  /** Where to listen. Any address but a loopback one needs a token. `AMBIT_HOST` overrides it. */
  host: z.string().min(1).default("127.0.0.1"),
  auth: z.enum(authModes).default("token").meta({
    description:
      "`token`: where neither AMBIT_TOKEN nor `tokens` is set, the server makes a token at each start and keeps it in `server-<port>.token` of its data folder, where the command line reads it. `none`: every program of this machine may call; on loopback only. `AMBIT_AUTH` overrides it.",
  }),
  /** 0 selects a free port. `AMBIT_PORT` overrides it. */
  port: z.int().min(0).max(65_535).default(8765),
  console: z.boolean().default(false).meta({
    description:
      "Whether the server serves the console, a page for people, under `/console`. `ambit serve --console` overrides it.",
  }),
  /** Names, in addition to loopback ones, under which a server on loopback may be called, such as a reverse proxy's. */
  allowedHosts: z.array(z.string().min(1)).default([]),
  origins: z.array(originSchema).max(100).default([]).meta({
    description:
      "Sites whose pages may call this server from a browser (CORS), each exactly as the browser names it: `https://app.example.com`. Never `*`. Default: none.",
  }),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .regex(/^[^?#]*[^?#/]$/, { error: "must have no query and no final slash" })
    .optional()
    .meta({
      description:
        "Where browsers reach this server, such as `https://ambit.example.com`: signed URLs of files begin with it. Default: they are relative, for pages whose own origin passes them on.",
    }),
  /**
   * Where other replicas' callers reach this one: `http://10.0.0.5:8765`. Default: where it listens.
   * `AMBIT_ADDRESS` overrides it.
   */
  address: z.url({ protocol: /^https?$/ }).optional(),
  /** The name that `GET /health` has of this replica. Default: a new one at each start. `AMBIT_REPLICA_ID` overrides it. */
  replicaId: z.string().min(1).max(256).optional(),
  health: z
    .strictObject({
      /** `AMBIT_HEALTH_HOST` overrides it. */
      host: z.string().min(1).default("127.0.0.1"),
      port: z.int().min(0).max(65_535).optional().meta({
        description:
          "A second port, served by a separate thread that answers only `/health` and `/ready`, in time whatever the load. 0 selects a free port. Default: none. `AMBIT_HEALTH_PORT` overrides it.",
      }),
      stallTimeoutMs: z.int().min(1_000).max(2_147_483_647).default(10_000).meta({
        description:
          "Milliseconds without a turn of the event loop, after which the health listener answers 503 (`stalled`).",
      }),
    })
    .prefault({}),
  preview: previewSettingsSchema.prefault({}),
  terminals: terminalSettingsSchema.prefault({}),
  maxConnections: z.int().min(16).max(1_000_000).default(4_096).meta({
    description:
      "Open connections; at most half of the files that the process may open. Half of them is for callers that aren't known yet: one more, and the oldest of these ends. A tenant's share is a fifth of the others; beyond, 429.",
  }),
  headersTimeoutMs: z.int().min(100).max(600_000).default(10_000).meta({
    description: "Milliseconds within which a request's header must arrive; then its connection ends.",
  }),
  writeTimeoutMs: z.int().min(100).max(2_147_483_647).default(120_000).meta({
    description:
      "Milliseconds within which a caller must take some of a response that waits for it; then its connection ends.",
  }),
  maxReadersPerRun: z.int().positive().max(100_000).default(32).meta({
    description:
      "Readers of one stored run's events, besides the caller that began it; beyond that, the oldest makes room, or the new one gets 429.",
  }),
  maxReadersPerProject: z.int().positive().max(100_000).default(256).meta({
    description:
      "Readers of all stored runs of one project, and of its snapshots; beyond that, the oldest makes room, or the new one gets 429.",
  }),
  minReadingMs: z.int().positive().max(2_147_483_647).default(30_000).meta({
    description:
      "Milliseconds after which a reader of a run's events makes room for a new one, where none is left.",
  }),
  bodyMs: z
    .int()
    .positive()
    .max(2_147_483_647)
    .default(60_000)
    .meta({ description: "Milliseconds within which a request's body must arrive; else 408." }),
  drainMs: z.int().nonnegative().max(2_147_483_647).default(10_000).meta({
    description:
      "Milliseconds that running runs get to finish after SIGTERM; then they are cancelled, each with its result.",
  }),
});

/** `ambit.config.mjs` or `ambit.config.json`. Every default of the server and the command line is here. */
export const configurationSchema = z.strictObject({
  /** For editors. */
  $schema: z.string().optional(),
  extends: z.enum(["defaults", "none"]).optional().meta({
    description:
      "`defaults`: the default plugins are loaded too, after those of `plugins`; one that `plugins` names has its settings from there. `none`: only those of `plugins`. Default: `none` where there are `plugins`, and the server's log names the default ones that are left out.",
  }),
  /** In order: the first sandbox that covers a boundary is taken, the first harness is the default. */
  plugins: pluginEntriesSchema.optional(),
  without: z.array(z.string().min(1)).default([]).meta({
    description:
      "Default plugins that aren't loaded: `@ambit/store-sqlite` for a server that stores nothing.",
  }),
  require: minimumBoundarySchema.prefault({}).meta({
    description:
      "What the boundary (`sandboxPermission`) of every request restricts at least. One below it is refused, and the refusal names the rule.",
  }),
  limits: runLimitsSchema.prefault({}),
  probes: probeSettingsSchema
    .extend({
      keepAcrossRestarts: z.boolean().default(false).meta({
        description:
          "Whether a server starts with the evidence of an earlier one on this boot of this host, as `ambit run` does, instead of probing. The evidence is never older than maxAgeMs.",
      }),
    })
    .prefault({}),
  permissions: z
    .strictObject({
      /** Calls that no request can allow. `AMBIT_DENY_PERMISSIONS` adds to them. */
      deny: denialSchema.default([]),
      unaskedTools: z.enum(["refuse", "boundary"]).default("refuse").meta({
        description:
          "What happens to a request whose default is to ask, for an agent that doesn't ask before it uses its own tools, such as Codex: `refuse`, or `boundary`: only the boundary confines these tools, and the result and the receipt say so. A rule or a default that denies refuses either way.",
      }),
    })
    .prefault({}),
  /** Callers with their own tokens, in addition to the operator's `AMBIT_TOKEN`: each sees only its own project. */
  tokens: tenantsSchema,
  /** How this runner reads requests. */
  contract: contractSettingsSchema.prefault({}),
  server: serverSchema.prefault({}),
  /** Settings of stored runs, if a store is loaded. */
  store: storeSettingsSchema.prefault({}),
  /** Settings of runs where no store is loaded: this process keeps them for a while. */
  memory: memorySettingsSchema.prefault({}),
  /** Limits of what leaves workspaces. */
  workspace: workspaceSettingsSchema.prefault({}),
  /** How connections leave this host. */
  egress: egressSettingsSchema.prefault({}),
  /** Callbacks for new values of credentials. */
  credentials: credentialSettingsSchema.prefault({}),
  /** Messages to callers about their runs, if a store is loaded. */
  webhooks: webhookSettingsSchema.prefault({}),
  interactions: z
    .strictObject({
      /**
       * A file with the key that authenticates users' answers, the same for replicas that resume each
       * other's conversations. It must exist. Default: `interaction.key` in the data folder, created at first use.
       * `AMBIT_INTERACTION_KEY_FILE` overrides it.
       */
      keyFile: z.string().min(1).optional(),
      /**
       * Files with further keys, with which the store's content is only read: the next one, until every replica has it, and
       * the earlier one afterwards. Each must exist. Default: none.
       */
      otherKeyFiles: z.array(z.string().min(1)).max(8).default([]),
      /**
       * Whether a server starts although the store has content that was encrypted with a key that it doesn't have.
       * `continue`: that content is lost. Default: `refuse`.
       */
      onLostKey: z.enum(["refuse", "continue"]).default("refuse"),
    })
    .prefault({}),
  log: z
    .strictObject({
      /** Default: `info` for `ambit serve`, `warn` otherwise. `AMBIT_LOG_LEVEL` overrides it. */
      level: logLevelSchema.optional(),
    })
    .prefault({}),
});

export type Configuration = z.output<typeof configurationSchema>;
export type ConfigurationInput = z.input<typeof configurationSchema>;

/** Only types a configuration. It is validated when it is loaded. */
export function defineConfiguration(configuration: ConfigurationInput): ConfigurationInput {
  return configuration;
}

/** The published JSON Schema of a configuration file. A plugin itself, which only a module can hold, is opaque. */
export function configurationJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configurationSchema, { io: "input", unrepresentable: "any" });
}
