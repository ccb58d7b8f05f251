import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ConfigurationInvalid } from "../../src/configuration/problems.js";
import { signerIn } from "../../src/key-files.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-signing-"));
});
afterAll(() => rm(folder, { recursive: true }));

it("says which setting names a file that can't be used, and what to name", async () => {
  const files = { missing: join(folder, "none"), other: join(folder, "rsa") };
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  await writeFile(files.other, privateKey.export({ type: "pkcs8", format: "pem" }));
  for (const file of Object.values(files)) {
    expect(() => signerIn(file)).toThrow(ConfigurationInvalid);
    expect(() => signerIn(file)).toThrow(
      /^workspace.signingKeyFile: .*: name an Ed25519 key without a passphrase/,
    );
  }
});
