export default {
  extends: "defaults",
  plugins: [{ use: "./dist/index.js", config: { file: "runs.ndjson" } }],
};
