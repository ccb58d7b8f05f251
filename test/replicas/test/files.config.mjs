export default {
  extends: "defaults",
  plugins: [
    { use: "@ambit/store-postgres", config: { schema: "files" } },
    { use: "@ambit/blobs-s3", config: JSON.parse(process.env.AMBIT_TEST_S3 ?? "{}") },
  ],
  interactions: { keyFile: process.env.AMBIT_TEST_KEY },
  workspace: { encrypt: true },
};
