/**
 * One line for a POSIX shell that runs `argv` as it stands. The platform takes commands as shell lines only.
 *
 * @throws TypeError for NUL, which no argument can hold, and for line breaks, which would end the platform's line.
 */
export function shellLine(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

function quoted(argument: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this refuses.
  if (/[\u0000\n\r]/.test(argument)) {
    throw new TypeError("An argument for the platform's shell holds a NUL or a line break");
  }
  // Nothing is special between single quotes; one of its own is put in from outside them.
  return /^[A-Za-z0-9_/.:=@%+-]+$/.test(argument) && !argument.startsWith("=")
    ? argument
    : `'${argument.replaceAll("'", `'\\''`)}'`;
}
