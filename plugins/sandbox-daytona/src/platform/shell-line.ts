/**
 * One line for a POSIX shell that runs exactly `argv`. The platform takes commands only as shell lines.
 *
 * @throws TypeError for NUL, which no argument can contain, and for line breaks, which would end the platform's line.
 */
export function shellLine(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

function quoted(argument: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this refuses.
  if (/[\u0000\n\r]/.test(argument)) {
    throw new TypeError("An argument for the platform's shell holds a NUL or a line break");
  }
  // Nothing is special between single quotes; a single quote itself is inserted outside them.
  return /^[A-Za-z0-9_/.:=@%+-]+$/.test(argument) && !argument.startsWith("=")
    ? argument
    : `'${argument.replaceAll("'", `'\\''`)}'`;
}
