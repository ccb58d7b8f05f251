export default {
  extends: "defaults",
  plugins: [{ use: "./dist/index.js", config: { timeZone: "Europe/Berlin" } }],
};
