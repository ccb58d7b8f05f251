import { type BlobsBackend, definePlugin, type UpstreamProxy } from "@ambit/core/plugin";
import type { Blobs } from "@ambit/workspace/blobs";
import { configSchema, type S3BlobsConfig } from "./config.js";

export type { S3BlobsConfig } from "./config.js";

/** A place for files that many replicas share. Nothing is connected or imported before `open`. */
export function s3Blobs(config: S3BlobsConfig, upstreamProxy?: UpstreamProxy): BlobsBackend<Blobs> {
  return {
    name: "s3",
    open: async ({ temporary }) => {
      const { openS3 } = await import("./s3-blobs.js");
      return openS3(config, temporary, upstreamProxy);
    },
  };
}

export default definePlugin({
  name: "blobs-s3",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    // The client reads them whenever it makes a connection, so they stay in this process; in no sandbox.
    registrar.secret(process.env.AWS_SECRET_ACCESS_KEY);
    registrar.secret(process.env.AWS_SESSION_TOKEN);
    registrar.add("blobs", s3Blobs(config, registrar.upstreamProxy));
  },
});
