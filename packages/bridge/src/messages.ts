/** Version of the protocol between the two halves. */
export const protocolVersion = 1;

/** Paths below the bridge's folder, known to both halves. */
export const workspaceName = "workspace";
export const homeName = "home";

/** Descriptor of the guest daemon that the command of a first pipe waits for: it ends when nothing holds it any more. */
export const pipeOfFirstCommand = 3;

/** First message of a channel, from the runner, by the channel's kind. */
export interface Requests {
  /** streams: standard input in; standard output and error out. */
  readonly run: {
    readonly argv: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly cwd?: string | undefined;
    readonly role: "agent" | "tool";
  };
  /** main stream in: the content. */
  readonly write: { readonly path: string; readonly executable: boolean };
  /** main stream out: the content. */
  readonly read: { readonly path: string };
  /** Unpacks an archive below a folder. main stream in: the archive, where it wasn't uploaded to a path. */
  readonly unpack: { readonly archive?: string; readonly into: string };
  /**
   * Listens on a port of the sandbox's loopback, but on none of these; each connection is a channel of kind `connection`, or
   * with `to` one to a Unix socket inside.
   */
  readonly listen: { readonly except: readonly number[]; readonly to?: string };
  /** Connects to a server on the sandbox's loopback. main stream: the connection, once the reply says that it is made. */
  readonly enter: { readonly port: number };
  readonly facts: Readonly<Record<string, never>>;
  /** What is in the session's folders, and the number of its processes. */
  readonly contents: Readonly<Record<string, never>>;
  /** Ends every process and the bridge itself. */
  readonly shutdown: Readonly<Record<string, never>>;
}

/** Later messages of the runner on a `run` channel. */
export interface KillMessage {
  readonly kill: "SIGTERM" | "SIGKILL";
}

/** A channel's first message. The runner wrote it: the guest daemon trusts the runner's types. */
export function requestOf<Kind extends keyof Requests>(_kind: Kind, message: unknown): Requests[Kind] {
  return message as Requests[Kind];
}

export function killMessage(message: unknown): KillMessage | undefined {
  const hasKill = typeof message === "object" && message !== null && "kill" in message;
  return hasKill && (message.kill === "SIGTERM" || message.kill === "SIGKILL")
    ? { kill: message.kill }
    : undefined;
}
