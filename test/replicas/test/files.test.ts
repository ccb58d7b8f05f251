import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@ambit/backend-kit";
import { S3Server } from "@ambit/fakes/s3-server";
import { postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { Replica } from "./cluster.js";

const resultSchema = z.object({ ok: z.boolean(), runId: z.string(), error: z.string().optional() });

it("a file that a run left on one replica is served, and deleted, by another", {
  timeout: 60_000,
}, async (context) => {
  const missing = postgresIsMissing();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const folder = await mkdtemp(join(tmpdir(), "ambit-files-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "key"), randomBytes(32).toString("base64"), { mode: 0o600 });
  const key = { accessKeyId: "AKTEST", secretAccessKey: "secret-of-the-test", region: "eu-test-1" };
  const { s3, endpoint } = await S3Server.start(key, onTestFinished);
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const environment = {
    AMBIT_POSTGRES_URL: postgres.url,
    AMBIT_TEST_KEY: join(folder, "key"),
    AMBIT_TEST_S3: JSON.stringify({ ...key, bucket: S3Server.bucket, endpoint }),
  };
  const replicas = await Promise.all(
    ["one", "two"].map(async (name) => {
      // Its own data folder, as on another host.
      const own = { ...environment, XDG_STATE_HOME: join(folder, name), HOME: join(folder, name) };
      const replica = new Replica(`http://127.0.0.1:${await freePort()}`, own, false, "./files.config.mjs");
      onTestFinished(() => replica.kill());
      await replica.start();
      return replica;
    }),
  );
  const [one, two] = replicas.map(({ url }) => url);

  const response = await fetch(`${one}/run`, {
    method: "POST",
    body: JSON.stringify({
      harness: "demo",
      messages: [{ role: "user", content: "write report.txt the-report-itself\nsay done" }],
      permissions: { default: "allow" },
      outputs: { include: ["*.txt"] },
    }),
  });
  const { ok, runId, error } = resultSchema.parse(await response.json());
  expect([ok, error]).toEqual([true, undefined]);
  const path = `/runs/${runId}/files/report.txt`;
  expect(await (await fetch(`${two}${path}`)).text()).toBe("the-report-itself");
  // What lies there is encrypted with the key that the replicas share.
  expect(s3.objects.size).toBe(3);
  for (const { bytes } of s3.objects.values()) expect(bytes.includes("the-report-itself")).toBe(false);

  expect((await fetch(`${two}/runs/${runId}`, { method: "DELETE" })).status).toBe(200);
  expect((await fetch(`${one}${path}`)).status).toBe(404);
  expect([...s3.objects.keys()]).toEqual([]);
  expect(s3.refused).toEqual([]);
});
