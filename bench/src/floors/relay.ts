/**
 * One more process between both ends of a stream, as cheap as Node allows: the minimal cost of a guest daemon. A string,
 * since a container doesn't have the bench's files.
 */
const source = `
const { spawn } = require("node:child_process");
const [program, ...args] = process.argv.slice(1);
const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
process.stdin.pipe(child.stdin);
child.stdout.pipe(process.stdout);
`;

/** A command behind such a process. */
export function relayed(
  node: string,
  argv: readonly [string, ...string[]],
): readonly [program: string, ...args: string[]] {
  return [node, "-e", source, ...argv];
}
