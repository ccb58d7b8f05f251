import { randomBytes, randomUUID } from "node:crypto";
import { ApiError, badRequest, notFound } from "../http/api-error.js";
import type { LoopbackSecretView } from "../interface.js";
import type { Substitution } from "../runner/messages.js";

export interface StoredSecret extends LoopbackSecretView {
  readonly description: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** An organisation's secrets. Values go only to the proxy. */
export class Secrets {
  readonly #secrets = new Map<string, StoredSecret>();

  all(): readonly StoredSecret[] {
    return [...this.#secrets.values()];
  }

  get(id: string): StoredSecret {
    const secret = this.#secrets.get(id);
    if (!secret) throw notFound(`Secret with ID ${id} not found`);
    return secret;
  }

  create(
    name: string,
    value: string,
    hosts: readonly string[],
    description: string | undefined,
  ): StoredSecret {
    if (!/^[A-Za-z0-9_-]+$/.test(name))
      throw badRequest("name must contain only alphanumeric characters, hyphens and underscores");
    if (this.#named(name)) throw new ApiError(409, `Secret with name ${name} already exists`);
    const now = new Date().toISOString();
    const placeholder = `dtn_secret_${randomBytes(16).toString("hex")}`;
    const secret = {
      id: randomUUID(),
      name,
      value,
      hosts,
      placeholder,
      description,
      createdAt: now,
      updatedAt: now,
    };
    this.#secrets.set(secret.id, secret);
    return secret;
  }

  update(id: string, change: Partial<Pick<StoredSecret, "value" | "hosts" | "description">>): StoredSecret {
    const secret = { ...this.get(id), ...change, updatedAt: new Date().toISOString() };
    this.#secrets.set(id, secret);
    return secret;
  }

  delete(id: string): void {
    this.get(id);
    this.#secrets.delete(id);
  }

  /** The variables of a sandbox that hold placeholders. An unknown name throws 404. */
  variables(wanted: ReadonlyMap<string, string>): Record<string, string> {
    const found: Record<string, string> = {};
    for (const [variable, name] of wanted) {
      const secret = this.#named(name);
      if (!secret) throw notFound(`Secret ${name} not found`);
      found[variable] = secret.placeholder;
    }
    return found;
  }

  /** The replacements of the proxy for a sandbox. A deleted secret isn't replaced any more. */
  substitutions(wanted: ReadonlyMap<string, string>): Substitution[] {
    return [...wanted.values()].flatMap((name) => {
      const secret = this.#named(name);
      return secret
        ? [{ placeholder: secret.placeholder, value: secret.value, hosts: [...secret.hosts] }]
        : [];
    });
  }

  #named(name: string): StoredSecret | undefined {
    return this.all().find((secret) => secret.name === name);
  }
}
