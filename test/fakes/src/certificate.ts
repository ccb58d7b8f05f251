import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate for the names, newly made. */
export function makeCertificate(...names: string[]): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), "ambit-certificate-"));
  try {
    const key = join(folder, "key");
    const cert = join(folder, "cert");
    const made = spawnSync("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...[
        "-subj",
        `/CN=${names[0]}`,
        "-addext",
        `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`,
      ],
      ...["-keyout", key, "-out", cert],
    ]);
    if (made.status !== 0)
      throw new Error(`openssl made no certificate: ${made.error?.message ?? made.stderr}`);
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
