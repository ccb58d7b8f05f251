import picocolors from "picocolors";

/** Colours for a person at a terminal; a file, a pipe and a build log get none, whatever the environment says of CI. */
export const colors = picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true);
