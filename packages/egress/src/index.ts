/** Where a run may connect, decided in the same way for everything that connects outside a sandbox. */
export * from "./decide.js";
export * from "./destination.js";
export * from "./guarded-lookup.js";
export * from "./operator-policy.js";
export * from "./replacements.js";
export * from "./target.js";
