// Ambit's default plugins, with a store that replicas share instead of the local one. AMBIT_POSTGRES_URL is its
// address.
export default {
  extends: "defaults",
  plugins: ["@ambit/store-postgres"],
};
