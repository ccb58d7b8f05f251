import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  type DecipherGCM,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { loopTurns, pieceEnd } from "@ambit/core/plugin";
import { jsonInTurns, storedJsonInTurns } from "@ambit/json-turns";
import type { ReplicaKeys } from "./store/index.js";

const algorithm = "aes-256-gcm";
const sizes = { key: 32, nonce: 12, tag: 16 } as const;
/** Characters of a large value that are encrypted, decoded or digested in one step: a multiple of base64's four. */
const pieceLength = 65_536;

/** What is derived from one key. */
interface DerivedKey {
  readonly sealing: Buffer;
  readonly naming: Buffer;
  /** Says which key it is, and nothing about it. */
  readonly fingerprint: string;
}

function derivedFrom(key: KeyObject): DerivedKey {
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", key, "", `ambit ${purpose}`, sizes.key));
  return {
    sealing: derive("queued request"),
    naming: derive("digest of a request"),
    fingerprint: derive("fingerprint of the key").toString("hex").slice(0, 32),
  };
}

/**
 * Protects a request's content from readers of the store: encrypted, or as a digest that can't be computed without the
 * key. Replicas that share a store must be able to read each other's.
 */
export class Sealing {
  /** What was sealed is read with any of them. */
  readonly #keys: readonly DerivedKey[];
  readonly #newest: DerivedKey;

  /** @param others keys that are only read with: the next one, before all replicas have it, or earlier ones. */
  constructor(key: KeyObject, others: readonly KeyObject[] = []) {
    this.#newest = derivedFrom(key);
    this.#keys = [this.#newest, ...others.map(derivedFrom)];
  }

  /** Fingerprints of the key that it seals with, and of all that it reads with. */
  get fingerprints(): Omit<ReplicaKeys, "mayLoseContent"> {
    return {
      newest: this.#newest.fingerprint,
      readable: this.#keys.map(({ fingerprint }) => fingerprint),
    };
  }

  /** @param id of the run: data sealed for one run can't be opened for another. */
  seal(id: string, request: unknown): string {
    const nonce = randomBytes(sizes.nonce);
    const cipher = createCipheriv(algorithm, this.#newest.sealing, nonce).setAAD(Buffer.from(id));
    const text = Buffer.concat([cipher.update(JSON.stringify(request), "utf8"), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64");
  }

  /** @throws Error for data sealed with another key. */
  unseal(id: string, sealed: string): unknown {
    const bytes = Buffer.from(sealed, "base64");
    const text = this.#withEachKey((key) => {
      const decipher = openedWith(key, id, bytes);
      return Buffer.concat([decipher.update(bytes.subarray(sizes.nonce + sizes.tag)), decipher.final()]);
    });
    return JSON.parse(text.toString("utf8"));
  }

  #withEachKey<Result>(read: (key: Buffer) => Result): Result {
    let failure: unknown;
    for (const { sealing } of this.#keys) {
      try {
        return read(sealing);
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure;
  }

  /** `seal` for what a caller sent, which may be large: in turns of the event loop. */
  async sealInTurns(id: string, request: unknown): Promise<string> {
    const nonce = randomBytes(sizes.nonce);
    const cipher = createCipheriv(algorithm, this.#newest.sealing, nonce).setAAD(Buffer.from(id));
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
    let failure: unknown;
    for (const { sealing } of this.#keys) {
      const decipher = openedWith(sealing, id, bytes);
      const decoder = new TextDecoder();
      let text = "";
      for (let at = sizes.nonce + sizes.tag; at < bytes.length; at += pieceLength) {
        text += decoder.decode(decipher.update(bytes.subarray(at, at + pieceLength)), { stream: true });
        await loopTurns.take(pieceLength);
      }
      try {
        // Before this, nothing of it can be trusted.
        decipher.final();
      } catch (error) {
        failure ??= error;
        continue;
      }
      return await storedJsonInTurns(text + decoder.decode());
    }
    throw failure;
  }

  /** Equal for equal requests, and reveals nothing about them. In turns of the event loop. */
  digest(request: unknown): Promise<string> {
    return digestWith(this.#newest, request);
  }

  /** Whether it is the digest of this request, with any of the keys. In turns of the event loop. */
  async isDigestOf(digest: string, request: unknown): Promise<boolean> {
    for (const key of this.#keys) if ((await digestWith(key, request)) === digest) return true;
    return false;
  }
}

function openedWith(key: Buffer, id: string, bytes: Buffer): DecipherGCM {
  return createDecipheriv(algorithm, key, bytes.subarray(0, sizes.nonce))
    .setAAD(Buffer.from(id))
    .setAuthTag(bytes.subarray(sizes.nonce, sizes.nonce + sizes.tag));
}

async function digestWith({ naming }: DerivedKey, request: unknown): Promise<string> {
  const digest = createHmac("sha256", naming);
  for await (const piece of piecesOf(await jsonInTurns(request))) digest.update(piece);
  return digest.digest("base64url");
}

async function* piecesOf(text: string): AsyncGenerator<string, void, undefined> {
  for (let at = 0; at < text.length; ) {
    const piece = text.slice(at, pieceEnd(text, at + pieceLength));
    at += piece.length;
    yield piece;
    await loopTurns.take(piece.length);
  }
}
