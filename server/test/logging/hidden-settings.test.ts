import { definePlugin, secret } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { z } from "zod";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { openAmbit } from "../../src/open.js";

it("hides marked settings in the log: of plugins, the configuration and the environment", async () => {
  const webhookSecret = `whsec_${Buffer.alloc(24, "w").toString("base64")}`;
  const plugin = definePlugin({
    name: "keyed",
    api: 1,
    config: z.strictObject({ apiKey: secret(z.string()), region: z.string() }),
    register: () => {},
  });
  const { redaction } = await openAmbit({
    environment: takeEnvironment({ AMBIT_TOKEN: "operator-token-1" }),
    configuration: {
      plugins: [{ use: plugin, config: { apiKey: "plugin-key-1", region: "region-1" } }],
      webhooks: { secret: webhookSecret },
    },
    logLevel: "silent",
  });
  expect(redaction.line(`plugin-key-1 region-1 operator-token-1 ${webhookSecret}`)).toBe(
    "[redacted] region-1 [redacted] [redacted]",
  );
});
