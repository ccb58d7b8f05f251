import picocolors from "picocolors";

/** Colours only for a terminal: a file, a pipe or a build log gets none, even if the environment says CI. */
export const colors = picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true);
