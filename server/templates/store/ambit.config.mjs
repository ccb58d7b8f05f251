export default {
  extends: "defaults",
  // There is one store: it replaces the default one.
  without: ["@ambit/store-sqlite"],
  plugins: [{ use: "./dist/index.js", config: { file: "runs.sqlite" } }],
};
