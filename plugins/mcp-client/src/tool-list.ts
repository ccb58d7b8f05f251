import { isDeepStrictEqual } from "node:util";
import { type Log, messageOf, type PublishedTool } from "@ambit/core/plugin";

/** Changes of one server's list while its session lives. Later ones don't count: each is read, and shown to the model. */
const maxChanges = 100;

type Changed = (tools: readonly PublishedTool[]) => void;

/** The tools of one server, which it may change while the session lives. */
export class ToolList {
  #byName: ReadonlyMap<string, PublishedTool> = new Map();
  readonly #watchers = new Set<Changed>();
  #changes = 0;
  #isStale = false;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly server: string,
    private readonly log: Log,
  ) {}

  get tools(): readonly PublishedTool[] {
    return [...this.#byName.values()];
  }

  set tools(tools: readonly PublishedTool[]) {
    this.#byName = new Map(tools.map((tool) => [tool.name, tool]));
  }

  find(name: string): PublishedTool | undefined {
    return this.#byName.get(name);
  }

  watch(changed: Changed): void {
    this.#watchers.add(changed);
  }

  /** The server says that its list has changed. @param read the list as it is now */
  changed(read: () => Promise<readonly PublishedTool[]>): void {
    this.#isStale = true;
    this.#reading ??= this.#read(read).finally(() => {
      this.#reading = undefined;
    });
  }

  /** Resolves once every change that the server has announced is known. */
  async current(): Promise<void> {
    await this.#reading;
  }

  /** Never rejects: what was listed before stays. */
  async #read(read: () => Promise<readonly PublishedTool[]>): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      this.#changes += 1;
      if (this.#changes > maxChanges) {
        if (this.#changes === maxChanges + 1)
          this.log.warn(
            { server: this.server },
            `an MCP server changed its tools more than ${maxChanges} times`,
          );
        return;
      }
      try {
        const tools = await read();
        if (isDeepStrictEqual(tools, this.tools)) continue;
        this.tools = tools;
        for (const changed of this.#watchers) changed(tools);
      } catch (error) {
        const reason = messageOf(error);
        this.log.warn(
          { server: this.server, reason },
          "the changed tools of an MCP server could not be listed",
        );
      }
    }
  }
}
