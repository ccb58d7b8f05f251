import { createHash, createPrivateKey, sign as signBytes } from "node:crypto";

/** Signs a commit's bytes as `ssh-keygen -Y sign` does. Its key stays outside every sandbox. @returns in PEM */
export type Sign = (commit: Buffer) => string;

/** Namespace of git's signatures (gitformat-signature), and the format's version. */
const namespace = "git";
const version = 1;

/**
 * Signs commits with an Ed25519 key, as `gpg.format=ssh` does (openssh PROTOCOL.sshsig).
 *
 * @param key the text of a file that `ssh-keygen -t ed25519 -N ''` writes
 * @throws TypeError for any other text, without a part of it
 */
export function signerOf(key: string): Sign {
  const { publicKey, seed } = ed25519In(key);
  const point = publicKey.subarray(-32).toString("base64url");
  const jwk = { kty: "OKP", crv: "Ed25519", d: seed.toString("base64url"), x: point };
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  return (commit) => {
    const digest = createHash("sha512").update(commit).digest();
    const common = [text(namespace), text(""), text("sha512")];
    const toSign = Buffer.concat([Buffer.from("SSHSIG"), ...common, framed(digest)]);
    const signature = Buffer.concat([text("ssh-ed25519"), framed(signBytes(undefined, toSign, privateKey))]);
    const number = Buffer.alloc(4);
    number.writeUInt32BE(version);
    const whole = [Buffer.from("SSHSIG"), number, framed(publicKey), ...common, framed(signature)];
    const lines =
      Buffer.concat(whole)
        .toString("base64")
        .match(/.{1,70}/g) ?? [];
    return ["-----BEGIN SSH SIGNATURE-----", ...lines, "-----END SSH SIGNATURE-----", ""].join("\n");
  };
}

/** Reads a key as OpenSSH stores it (PROTOCOL.key). */
function ed25519In(key: string): { readonly publicKey: Buffer; readonly seed: Buffer } {
  const [, encoded = ""] =
    /^-{5}BEGIN OPENSSH PRIVATE KEY-{5}\s([\s\S]+)-{5}END OPENSSH PRIVATE KEY-{5}\s*$/.exec(key) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.toString("latin1", 0, 15) !== "openssh-key-v1\0")
    throw new TypeError(
      "it isn't a private key in OpenSSH's format: make one with ssh-keygen -t ed25519 -N ''",
    );
  const outer = new Reader(bytes.subarray(15));
  const cipher = outer.next().toString("latin1");
  if (cipher !== "none")
    throw new TypeError(
      "it has a passphrase, which the server can't enter: remove it with ssh-keygen -p -N ''",
    );
  outer.next();
  outer.next();
  outer.skip(4);
  const publicKey = outer.next();
  const inner = new Reader(outer.next());
  // Twice the same random number.
  inner.skip(8);
  const type = inner.next().toString("latin1");
  if (type !== "ssh-ed25519")
    throw new TypeError(
      `it is a key of the type ${type}, and only ssh-ed25519 is supported: ssh-keygen -t ed25519`,
    );
  inner.next();
  return { publicKey, seed: inner.next().subarray(0, 32) };
}

class Reader {
  #at = 0;

  constructor(readonly bytes: Buffer) {}

  skip(count: number): undefined {
    this.#at += count;
  }

  next(): Buffer {
    if (this.#at + 4 > this.bytes.length) throw new TypeError("it is damaged: it ends too early");
    const start = this.#at + 4;
    this.#at = start + this.bytes.readUInt32BE(this.#at);
    if (this.#at > this.bytes.length) throw new TypeError("it is damaged: it ends too early");
    return this.bytes.subarray(start, this.#at);
  }
}

const text = (content: string) => framed(Buffer.from(content));

function framed(content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}
