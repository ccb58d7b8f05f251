export default {
  extends: "defaults",
  // There is one place for files: it replaces the default one.
  without: ["@ambit/blobs-folder"],
  plugins: [{ use: "./dist/index.js", config: { folder: "blobs" } }],
};
