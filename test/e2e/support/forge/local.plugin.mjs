import { definePlugin } from "@ambit/core/plugin";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";

const { TEST_FORGE_AUTHORITY, TEST_REGISTRY_AUTHORITY } = process.env;
export const trustedAuthorities = [TEST_FORGE_AUTHORITY, TEST_REGISTRY_AUTHORITY].filter(Boolean);
export const lookup = async () => ["127.0.0.1"];

/**
 * The local sandbox, where every name is a server of the test's. Its authorities aren't in its configuration, so that what one
 * server's probe found is there for the next one.
 */
export default definePlugin({
  name: "sandbox-local",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add("sandbox", new LocalSandbox({ ...config, trustedAuthorities }, lookup)),
});
