import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";

const algorithm = "aes-256-gcm";
const sizes = { key: 32, nonce: 12, tag: 16 } as const;

/**
 * Protects a request's content from readers of the store: encrypted, or as a digest that can't be computed without the
 * key. Replicas that share a store need the same key.
 */
export class Sealing {
  readonly #sealing: Buffer;
  readonly #naming: Buffer;

  constructor(key: KeyObject) {
    const derive = (purpose: string) =>
      Buffer.from(hkdfSync("sha256", key, "", `ambit ${purpose}`, sizes.key));
    this.#sealing = derive("queued request");
    this.#naming = derive("digest of a request");
  }

  /** @param id of the run: data sealed for one run can't be opened for another. */
  seal(id: string, request: unknown): string {
    const nonce = randomBytes(sizes.nonce);
    const cipher = createCipheriv(algorithm, this.#sealing, nonce).setAAD(Buffer.from(id));
    const text = Buffer.concat([cipher.update(JSON.stringify(request), "utf8"), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64");
  }

  /** @throws Error for data sealed with another key. */
  unseal(id: string, sealed: string): unknown {
    const bytes = Buffer.from(sealed, "base64");
    const nonce = bytes.subarray(0, sizes.nonce);
    const tag = bytes.subarray(sizes.nonce, sizes.nonce + sizes.tag);
    const decipher = createDecipheriv(algorithm, this.#sealing, nonce)
      .setAAD(Buffer.from(id))
      .setAuthTag(tag);
    const text = Buffer.concat([decipher.update(bytes.subarray(sizes.nonce + sizes.tag)), decipher.final()]);
    return JSON.parse(text.toString("utf8"));
  }

  /** Equal for equal requests, and reveals nothing about them. */
  digest(request: unknown): string {
    return createHmac("sha256", this.#naming).update(JSON.stringify(request)).digest("base64url");
  }
}
