export default {
  extends: "defaults",
  plugins: [{ use: "./dist/index.js", config: { request: { harness: "demo" } } }],
};
