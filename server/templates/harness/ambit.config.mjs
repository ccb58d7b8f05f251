export default {
  extends: "defaults",
  plugins: ["./dist/index.js"],
};
