/** Of the official SDK, whose protocol our own client of the log speaks. `pipe.test.ts` holds it to the installed one. */
export const sdkVersion = "0.216.0";
