import { definePlugin, secret } from "@ambit/core/plugin";
import postgres from "@ambit/store-postgres";
import { expect, it, vi } from "vitest";
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

it("hides what plugins read from variables: headers of OTLP as written and as sent, a database's password", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", "accept=text/plain,authorization=Bearer%20otlp-key-1");
  vi.stubEnv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-team=logs-key-1");
  vi.stubEnv("AMBIT_POSTGRES_URL", "postgres://ambit:postgres-key-1@127.0.0.1:9/ambit");
  vi.stubEnv("PGPASSWORD", "postgres-key-2");
  const { redaction } = await openAmbit({
    environment: takeEnvironment({}),
    configuration: { plugins: ["@ambit/telemetry-opentelemetry", { use: postgres }] },
    logLevel: "silent",
  });
  vi.unstubAllEnvs();
  for (const key of ["otlp-key-1", "Bearer%20otlp-key-1", "logs-key-1", "postgres-key-1", "postgres-key-2"])
    expect(redaction.line(`at ${key}, text/plain`)).toBe("at [redacted], text/plain");
});
