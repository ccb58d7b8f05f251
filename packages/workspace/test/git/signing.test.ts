import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { signerOf } from "../../src/git/signing.js";

const folder = mkdtempSync(join(tmpdir(), "ambit-signing-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const missing = existsSync("/usr/bin/ssh-keygen")
  ? undefined
  : "host: no ssh-keygen: apt-get install openssh-client";

function made(name: string, type: readonly string[], passphrase = ""): string {
  const file = join(folder, name);
  execFileSync("ssh-keygen", ["-q", ...type, "-N", passphrase, "-f", file]);
  return readFileSync(file, "utf8");
}

describe("a signature", () => {
  test("is one that ssh-keygen verifies, and only for what was signed", (context) => {
    if (missing !== undefined) context.skip(missing);
    const sign = signerOf(made("key", ["-t", "ed25519"]));
    writeFileSync(join(folder, "signature"), sign(Buffer.from("a commit")));
    writeFileSync(join(folder, "signers"), `me ${readFileSync(join(folder, "key.pub"), "utf8")}`);
    const verify = (input: string) =>
      execFileSync(
        "ssh-keygen",
        ["-Y", "verify", "-f", "signers", "-I", "me", "-n", "git", "-s", "signature"],
        { cwd: folder, input, stdio: ["pipe", "pipe", "pipe"] },
      ).toString();
    expect(verify("a commit")).toContain('Good "git" signature for me');
    expect(() => verify("another commit")).toThrow();
  });

  test("needs a key that the server can use", (context) => {
    if (missing !== undefined) context.skip(missing);
    const locked = made("locked", ["-t", "ed25519"], "a passphrase");
    expect(() => signerOf(locked)).toThrow("passphrase");
    expect(() => signerOf(made("rsa", ["-t", "rsa", "-b", "2048"]))).toThrow("only ssh-ed25519 is supported");
    expect(() => signerOf("no key")).toThrow("ssh-keygen -t ed25519");
    const whole = made("whole", ["-t", "ed25519"]);
    const [first, second = "", ...rest] = whole.split("\n");
    expect(() => signerOf([first, second.slice(0, 40), ...rest.slice(-2)].join("\n"))).toThrow("damaged");
  });
});
