import { definePlugin } from "@ambit/core/plugin";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";

const trustedAuthorities = [process.env.TEST_FORGE_AUTHORITY];

/** The local sandbox, where every name is a server of the test's. */
const local = definePlugin({
  name: "sandbox-local",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add("sandbox", new LocalSandbox(config, async () => ["127.0.0.1"])),
});

export default {
  plugins: [{ use: local, config: { trustedAuthorities } }, "@ambit/harness-acp", "@ambit/blobs-folder"],
  probes: { keepAcrossRestarts: true },
  workspace: { allowedRanges: ["127.0.0.0/8"], ...JSON.parse(process.env.TEST_WORKSPACE ?? "{}") },
};
