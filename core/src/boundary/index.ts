export * from "./boundary.js";
export * from "./network/index.js";
export * from "./normalise.js";
