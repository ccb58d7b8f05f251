/**
 * The official SDK's version, whose protocol Ambit's log client uses. `pipe.test.ts` compares it with the installed
 * one.
 */
export const sdkVersion = "0.216.0";
