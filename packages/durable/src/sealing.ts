import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  type DecipherGCM,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import type { ReplicaKeys } from "./store.js";

const algorithm = "aes-256-gcm";
const sizes = { key: 32, nonce: 12, tag: 16 } as const;
/** What is derived from one key. */
interface DerivedKey {
  readonly sealing: Buffer;
  readonly naming: Buffer;
  /** Says which key it is, and nothing about it. */
  readonly fingerprint: string;
}

/** What is sealed: data of one purpose can't be opened for another. */
export type SealingPurpose = "queued request" | "page token";

function derivedFrom(key: KeyObject, purposeOfSealing: SealingPurpose): DerivedKey {
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", key, "", `ambit ${purpose}`, sizes.key));
  return {
    sealing: derive(purposeOfSealing),
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
  constructor(key: KeyObject, others: readonly KeyObject[] = [], purpose: SealingPurpose = "queued request") {
    this.#newest = derivedFrom(key, purpose);
    this.#keys = [this.#newest, ...others.map((other) => derivedFrom(other, purpose))];
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

  /** A digest that is equal for equal requests, and reveals nothing about them. */
  digest(request: unknown): string {
    return digestWith(this.#newest, request);
  }

  /** Whether it is the digest of this request, with any of the keys. */
  isDigestOf(digest: string, request: unknown): boolean {
    return this.#keys.some((key) => digestWith(key, request) === digest);
  }
}

function openedWith(key: Buffer, id: string, bytes: Buffer): DecipherGCM {
  return createDecipheriv(algorithm, key, bytes.subarray(0, sizes.nonce))
    .setAAD(Buffer.from(id))
    .setAuthTag(bytes.subarray(sizes.nonce, sizes.nonce + sizes.tag));
}

function digestWith({ naming }: DerivedKey, request: unknown): string {
  return createHmac("sha256", naming).update(JSON.stringify(request)).digest("base64url");
}
