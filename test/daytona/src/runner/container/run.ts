import { spawn } from "node:child_process";

/** Runs a program to its end, with a text as its input. If it fails, rejects with its output. */
export async function run(program: string, args: readonly string[], input = ""): Promise<void> {
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
  const said: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk));
  // It may exit without reading everything; its exit code shows the result.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0)
    throw new Error(`${program} failed (${code}): ${Buffer.concat(said).toString("utf8").trim()}`);
}
