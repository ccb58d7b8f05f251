import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { loopTurns, pieceEnd } from "@ambit/core/plugin";
import { jsonInTurns, storedJsonInTurns } from "@ambit/json-turns";

const algorithm = "aes-256-gcm";
const sizes = { key: 32, nonce: 12, tag: 16 } as const;
/** Characters of a large value that are encrypted, decoded or digested in one step: a multiple of base64's four. */
const pieceLength = 65_536;

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

  /** `seal` for what a caller sent, which may be large: in turns of the event loop. */
  async sealInTurns(id: string, request: unknown): Promise<string> {
    const nonce = randomBytes(sizes.nonce);
    const cipher = createCipheriv(algorithm, this.#sealing, nonce).setAAD(Buffer.from(id));
    const encrypted: Buffer[] = [];
    for await (const piece of piecesOf(await jsonInTurns(request)))
      encrypted.push(cipher.update(piece, "utf8"));
    encrypted.push(cipher.final());
    const bytes = Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]);
    const texts: string[] = [];
    // Base64 makes four characters of three bytes.
    const length = (pieceLength / 4) * 3;
    for (let at = 0; at < bytes.length; at += length) {
      texts.push(bytes.toString("base64", at, at + length));
      await loopTurns.take(pieceLength);
    }
    return texts.join("");
  }

  /** `unseal` in turns of the event loop. @throws Error for data sealed with another key */
  async unsealInTurns(id: string, sealed: string): Promise<unknown> {
    const decoded: Buffer[] = [];
    for await (const piece of piecesOf(sealed)) decoded.push(Buffer.from(piece, "base64"));
    const bytes = Buffer.concat(decoded);
    const nonce = bytes.subarray(0, sizes.nonce);
    const decipher = createDecipheriv(algorithm, this.#sealing, nonce)
      .setAAD(Buffer.from(id))
      .setAuthTag(bytes.subarray(sizes.nonce, sizes.nonce + sizes.tag));
    const decoder = new TextDecoder();
    let text = "";
    for (let at = sizes.nonce + sizes.tag; at < bytes.length; at += pieceLength) {
      text += decoder.decode(decipher.update(bytes.subarray(at, at + pieceLength)), { stream: true });
      await loopTurns.take(pieceLength);
    }
    // Before this, nothing of it can be trusted.
    decipher.final();
    return await storedJsonInTurns(text + decoder.decode());
  }

  /** Equal for equal requests, and reveals nothing about them. In turns of the event loop. */
  async digest(request: unknown): Promise<string> {
    const digest = createHmac("sha256", this.#naming);
    for await (const piece of piecesOf(await jsonInTurns(request))) digest.update(piece);
    return digest.digest("base64url");
  }
}

async function* piecesOf(text: string): AsyncGenerator<string, void, undefined> {
  for (let at = 0; at < text.length; ) {
    const piece = text.slice(at, pieceEnd(text, at + pieceLength));
    at += piece.length;
    yield piece;
    await loopTurns.take(piece.length);
  }
}
