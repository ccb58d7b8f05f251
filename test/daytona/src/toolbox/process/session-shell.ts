/** The prefix of every line of a stream in a command's log. */
export const stdoutPrefix = Buffer.from([1, 1, 1]);
export const stderrPrefix = Buffer.from([2, 2, 2]);

/** The files of one command of a session. */
export function commandFiles(folder: string) {
  return {
    folder,
    log: `${folder}/output.log`,
    exitCode: `${folder}/exit_code`,
    command: `${folder}/cmd.sh`,
    input: `${folder}/input.pipe`,
    stdout: `${folder}/stdout.pipe`,
    stderr: `${folder}/stderr.pipe`,
  };
}
export type CommandFiles = ReturnType<typeof commandFiles>;

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * The input of the session's bash for one command. Each output goes through a pipe to a loop of bash's `read`, which writes
 * it to the log line by line: it drops NULs, adds a newline to the last line, and is as slow as `read`. The command is
 * sourced, so it shares the session's variables and folder, and its `exit` ends the session. The exit code is written only
 * after both loops have ended. A shell that exits removes the pipes; one that gets SIGTERM does too, and goes on.
 */
export function commandScript(files: CommandFiles, keepsInputOpen: boolean): string {
  const label = (prefix: string, pipe: string) =>
    `{ while IFS= read -r text || [ -n "$text" ]; do printf '${prefix}%s\\n' "$text"; done; } < ${quote(pipe)} >> ${quote(files.log)}`;
  const pipes = [files.stdout, files.stderr, files.input].map(quote).join(" ");
  // A second writer, which never writes, keeps the command's input open after the first message.
  const holder = keepsInputOpen ? "exec sleep infinity" : ":";
  return `
mkfifo ${pipes} && {
  trap ${quote(`rm -f ${pipes}`)} EXIT HUP INT TERM
  ( ${label("\\001\\001\\001", files.stdout)} ) & daytona_out=$!
  ( ${label("\\002\\002\\002", files.stderr)} ) & daytona_err=$!
  ( ${holder} ) > ${quote(files.input)} & daytona_input=$!
  { . ${quote(files.command)}; } < ${quote(files.input)} > ${quote(files.stdout)} 2> ${quote(files.stderr)}
  daytona_exit=$?
  kill "$daytona_input" 2>/dev/null; wait "$daytona_input" 2>/dev/null
  wait "$daytona_out" "$daytona_err"
  echo "$daytona_exit" >> ${quote(files.exitCode)}
  rm -f ${pipes}
}
`;
}

/** Splits a log into its two streams. Text before the first prefix belongs to neither. */
export function demultiplex(log: Buffer): { stdout: Buffer; stderr: Buffer } {
  const out: Buffer[] = [];
  const error: Buffer[] = [];
  let position = 0;
  const next = (from: number) => {
    const found = [log.indexOf(stdoutPrefix, from), log.indexOf(stderrPrefix, from)].filter((at) => at >= 0);
    return found.length === 0 ? log.length : Math.min(...found);
  };
  position = next(0);
  while (position < log.length) {
    const start = position + stdoutPrefix.length;
    const end = next(start);
    (log[position] === stdoutPrefix[0] ? out : error).push(log.subarray(start, end));
    position = end;
  }
  return { stdout: Buffer.concat(out), stderr: Buffer.concat(error) };
}
