import { secret } from "@ambit/core/plugin";
import { z } from "zod";

export const configSchema = z
  .strictObject({
    /** It must exist. */
    bucket: z.string().min(3).max(255),
    /** Of the bucket. Default: `AWS_REGION`, or the one of the AWS profile; with `endpoint`, `us-east-1`. */
    region: z.string().min(1).optional(),
    /** Of a service with S3's API: `https://minio.example:9000`. Default: AWS. */
    endpoint: z.url({ protocol: /^https?$/ }).optional(),
    /** Of every key: one for each store of runs, since files whose run isn't in the store are deleted. */
    prefix: z
      .string()
      .regex(
        /^([A-Za-z0-9!_.*'()-]+\/)*$/,
        "must be empty, or names that each end with /, such as ambit/files/",
      )
      .max(256)
      .default("ambit/"),
    /** Whether the bucket is in the path instead of the host's name, as most other services want it. Default: with `endpoint`. */
    forcePathStyle: z.boolean().optional(),
    /** Default, without this and the next: the AWS SDK's own chain (environment, profile, container, instance). */
    accessKeyId: z.string().min(1).optional(),
    secretAccessKey: secret(z.string().min(1)).optional(),
    sessionToken: secret(z.string().min(1)).optional(),
    /** What the service encrypts with: `AES256` or `aws:kms`. Default: as the bucket says. */
    serverSideEncryption: z.enum(["AES256", "aws:kms", "aws:kms:dsse"]).optional(),
    /** Key of `aws:kms`. Default: the account's. */
    kmsKeyId: z.string().min(1).optional(),
    /** Milliseconds without a byte from the service, after which a request has failed. */
    timeoutMs: z.int().min(100).max(600_000).default(30_000),
    /** Attempts for a request that fails with a status or an error that may pass. */
    maxAttempts: z.int().min(1).max(10).default(4),
  })
  .superRefine(({ accessKeyId, secretAccessKey, sessionToken, serverSideEncryption, kmsKeyId }, context) => {
    const refuse = (field: string, message: string) =>
      context.addIssue({ code: "custom", path: [field], message });
    if (accessKeyId !== undefined && secretAccessKey === undefined)
      refuse("secretAccessKey", "is needed with accessKeyId");
    if (accessKeyId === undefined && (secretAccessKey ?? sessionToken) !== undefined)
      refuse("accessKeyId", "is needed with secretAccessKey and sessionToken");
    if (kmsKeyId !== undefined && serverSideEncryption?.startsWith("aws:kms") !== true)
      refuse("serverSideEncryption", "must be aws:kms with kmsKeyId");
  });
export type S3BlobsConfig = z.output<typeof configSchema>;
