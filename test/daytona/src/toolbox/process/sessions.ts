import { ApiError } from "../../http/api-error.js";
import { Session } from "./session.js";

/** The sessions of a container, by their ids. */
export class Sessions {
  readonly #sessions = new Map<string, Session>();
  /** Reserved before the session exists, so that only one of two concurrent creates of an id succeeds. */
  readonly #ids = new Set<string>();

  constructor(
    private readonly folder: string,
    private readonly graceMs: number,
  ) {}

  async create(id: string): Promise<void> {
    if (this.#ids.has(id)) throw new ApiError(409, "session already exists");
    this.#ids.add(id);
    try {
      const folder = `${this.folder}/${encodeURIComponent(id)}`;
      this.#sessions.set(id, await Session.open(id, folder, this.graceMs));
    } catch (error) {
      this.#ids.delete(id);
      throw error;
    }
  }

  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  get(id: string): Session {
    const session = this.find(id);
    if (!session) throw new ApiError(404, "session not found");
    return session;
  }

  all(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  async delete(id: string): Promise<void> {
    await this.get(id).delete();
    this.#sessions.delete(id);
    this.#ids.delete(id);
  }
}
