/** What `ambit init --plugin` can write: each has a template. */
export const pluginKinds = [
  "executor",
  "sandbox",
  "observer",
  "store",
  "blobs",
  "harness",
  "delivery",
  "gateway",
  "dialect",
  "door",
] as const;
export type PluginKind = (typeof pluginKinds)[number];
