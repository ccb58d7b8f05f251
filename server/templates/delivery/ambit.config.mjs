export default {
  extends: "defaults",
  // Else the default delivery, which is loaded before or after, might be taken.
  without: ["@ambit/mcp-http"],
  plugins: ["./dist/index.js"],
};
