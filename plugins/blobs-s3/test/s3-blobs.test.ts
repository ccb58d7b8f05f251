import { Readable } from "node:stream";
import { type S3Fault, S3Server } from "@ambit/fakes/s3-server";
import { describeBlobs } from "@ambit/testkit/vitest";
import type { Blobs } from "@ambit/workspace/blobs";
import { expect, onTestFinished, test } from "vitest";
import { configSchema } from "../src/config.js";
import { s3Blobs } from "../src/index.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const key = { accessKeyId: "AKTEST", secretAccessKey: "secret-of-the-test", region: "eu-test-1" };

async function started(onEnd: (close: () => void) => void, settings: object = {}) {
  const { s3, endpoint } = await S3Server.start(key, onEnd);
  const fast = { timeoutMs: 400, maxAttempts: 2 };
  const config = configSchema.parse({ ...key, ...fast, bucket: S3Server.bucket, endpoint, ...settings });
  return { s3, backend: s3Blobs(config) };
}

describeBlobs("s3", async () => {
  let close = () => {};
  const { s3, backend } = await started(
    (end) => {
      close = end;
    },
    { timeoutMs: 5_000 },
  );
  const faults: readonly S3Fault[] = [403, 404, 500, "cut"];
  return {
    backend,
    faults: faults.map((fault) => ({
      name: String(fault),
      breaks: fault === "cut" ? "content" : "everything",
      begin: async () => {
        s3.fault = fault;
        return async () => {
          s3.fault = undefined;
        };
      },
    })),
    close: async () => {
      expect(s3.refused).toEqual([]);
      expect([...s3.uploads.keys()]).toEqual([]);
      close();
    },
  };
});

async function opened(settings: object = {}) {
  const { s3, backend } = await started(onTestFinished, settings);
  const blobs = await backend.open({ log, temporary: false });
  onTestFinished(() => blobs.close());
  return { s3, blobs };
}

const put = (blobs: Blobs, content = "x") => blobs.put("1", "f", Readable.from([Buffer.from(content)]));

test("readers that stop in the middle of a file do not stop others from keeping and finding one", async () => {
  const { blobs } = await opened({ timeoutMs: 20_000 });
  // More than the connection takes of it beforehand.
  const piece = Buffer.alloc(4_000_000);
  await blobs.put("1", "large", Readable.from([piece, piece]));
  const readers = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const reader = (await blobs.get("1", "large"))?.content[Symbol.asyncIterator]();
      onTestFinished(async () => void (await reader?.return?.()));
      return (await reader?.next())?.done;
    }),
  );
  expect(readers).toEqual(readers.map(() => false));
  await put(blobs);
  expect(await blobs.get("1", "f")).toMatchObject({ size: 1 });
});

test("a service that doesn't answer is given up, and named", async () => {
  const { s3, blobs } = await opened();
  s3.fault = "silent";
  await expect(put(blobs)).rejects.toThrow(/didn't answer in time.*timeoutMs/);
});

test.each([
  ["a wrong secret", { secretAccessKey: "another" }, /the secret key is wrong/],
  ["an unknown key", { accessKeyId: "AKOTHER" }, /the access key is unknown/],
  ["another bucket", { bucket: "another" }, /the bucket doesn't exist/],
])("%s is refused, with the setting to correct", async (_what, settings, message) => {
  const { s3, blobs } = await opened(settings);
  await expect(put(blobs)).rejects.toMatchObject({
    code: "store_failed",
    message: expect.stringMatching(message),
  });
  expect(s3.objects.size).toBe(0);
});

test("nothing of the secret is in what an error shows", async () => {
  const { blobs } = await opened({ secretAccessKey: "hunter2-hunter2" });
  const error: unknown = await put(blobs).catch((thrown: unknown) => thrown);
  expect(JSON.stringify([String(error), error instanceof Error && error.cause])).not.toContain("hunter2");
});

test("an error that passes is tried again", async () => {
  const { s3, blobs } = await opened({ maxAttempts: 8 });
  s3.fault = 500;
  setTimeout(() => {
    s3.fault = undefined;
  }, 100);
  await put(blobs);
  expect((await blobs.get("1", "f"))?.size).toBe(1);
});

test("keys begin with the prefix, name no owner, and objects are encrypted as the settings say", async () => {
  const { s3, blobs } = await opened({ prefix: "a/b/", serverSideEncryption: "AES256" });
  await blobs.put("acme/run-1", "f", Readable.from([Buffer.from("x")]));
  expect(
    [...s3.objects.keys()].every((name) => /^a\/b\/(files|owners)\/[0-9a-f]{64}(\/f)?$/.test(name)),
  ).toBe(true);
  expect([...s3.objects.values()].map(({ encryption }) => encryption)).toEqual(["AES256", "AES256"]);
});

test.each([
  [{ accessKeyId: "a" }, "secretAccessKey"],
  [{ sessionToken: "a" }, "accessKeyId"],
  [{ kmsKeyId: "a" }, "serverSideEncryption"],
  [{ prefix: "no-slash" }, "prefix"],
  [{ endpoint: "ftp://x" }, "endpoint"],
])("refuses the settings %j by the field %s", (settings, field) => {
  const { error } = configSchema.safeParse({ bucket: "bucket", ...settings });
  expect(error?.issues.map(({ path }) => path.join("."))).toEqual([field]);
});
