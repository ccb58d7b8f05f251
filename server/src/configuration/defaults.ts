/**
 * The plugins that come with Ambit, in order of preference; loaded when a configuration names
 * none. Each is imported on demand.
 */
export const ownPlugins: Readonly<Record<string, () => Promise<unknown>>> = {
  "@ambit/sandbox-local": () => import("@ambit/sandbox-local"),
  "@ambit/harness-acp": () => import("@ambit/harness-acp"),
  "@ambit/mcp-http": () => import("@ambit/mcp-http"),
  "@ambit/model-route": () => import("@ambit/model-route"),
  "@ambit/mcp-client": () => import("@ambit/mcp-client"),
  "@ambit/executor-callback": () => import("@ambit/executor-callback"),
  "@ambit/executor-code": () => import("@ambit/executor-code"),
  "@ambit/executor-client": () => import("@ambit/executor-client"),
  "@ambit/compat-agenta": () => import("@ambit/compat-agenta"),
  "@ambit/door-acp": () => import("@ambit/door-acp"),
  "@ambit/blobs-folder": () => import("@ambit/blobs-folder"),
  "@ambit/store-sqlite": () => import("@ambit/store-sqlite"),
  "@ambit/telemetry-opentelemetry": () => import("@ambit/telemetry-opentelemetry"),
  "@ambit/metrics-prometheus": () => import("@ambit/metrics-prometheus"),
};

/** Ambit's plugins that a deployer installs next to the configuration. */
export const furtherPlugins: readonly string[] = [
  "@ambit/sandbox-docker",
  "@ambit/sandbox-kubernetes",
  "@ambit/sandbox-daytona",
  "@ambit/store-postgres",
  "@ambit/blobs-s3",
  "@ambit/door-ag-ui",
  "@ambit/door-ai-sdk",
  "@ambit/door-mcp",
];

/** Plugins in whose place a default one isn't loaded, if a configuration extends the defaults: there is one store, and one place for files. */
export const replacedDefaults: ReadonlyMap<string, string> = new Map([
  ["@ambit/store-postgres", "@ambit/store-sqlite"],
  ["@ambit/blobs-s3", "@ambit/blobs-folder"],
]);

export const defaultPlugins: readonly string[] = Object.keys(ownPlugins);
