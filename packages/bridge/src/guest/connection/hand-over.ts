import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { Socket } from "node:net";
import { pipeOfFirstCommand } from "../../messages.js";

/** First bytes of an attachment that offers its pipes. What a runner sends never begins like that. */
const mark = "ambit pipes ";
/** What the daemon answers. Neither begins its own bytes. */
const [taken, refused] = [1, 2] as const;

/** Standard input and output of an attachment, as the daemon reads and writes them. */
export interface TakenPipes {
  readonly input: Socket;
  readonly output: Socket;
}

/**
 * Offers the daemon this process's standard input and output, so that no byte passes through this process. It must live as
 * long as they are used: the platform takes its end for the command's.
 *
 * @returns whether the daemon has taken them; if not, everything is to be passed on.
 */
export async function handOver(socket: Socket): Promise<boolean> {
  // Sockets and terminals can't be opened a second time.
  if (![0, 1].every((fd) => fstatSync(fd).isFIFO())) return false;
  socket.write(`${mark}${process.pid} ${identityOf(0)} ${identityOf(1)}\n`);
  const answer = await new Promise<Buffer | undefined>((resolve) => {
    socket.once("data", (bytes: Buffer) => {
      socket.pause();
      resolve(bytes);
    });
    socket.once("close", () => resolve(undefined));
  });
  if (answer?.[0] === taken) return true;
  const rest = answer?.subarray(answer[0] === refused ? 1 : 0);
  if (rest !== undefined && rest.length > 0) socket.unshift(rest);
  return false;
}

/**
 * Takes the pipes of an attachment, and answers it.
 *
 * @param first bytes that came from it.
 * @returns "none" if it offers none; undefined if they can't be taken, and it passes on what they carry.
 */
export function takeOver(socket: Socket, first: Buffer): TakenPipes | "none" | undefined {
  if (!first.toString("latin1", 0, mark.length).startsWith(mark)) return "none";
  const [pid = "", input = "", output = ""] = first.toString("latin1", mark.length).trim().split(" ");
  const pipes = /^\d+$/.test(pid) ? open(pid, input, output) : undefined;
  socket.write(Buffer.of(pipes === undefined ? refused : taken));
  return pipes;
}

/** A pipe that this process was started with. */
export interface OwnPipes extends TakenPipes {
  /** As long as it is open, the command at the pipe's end lives. */
  readonly command: Socket;
}

/** Takes this process's own standard input and output, as if an attachment had offered them. */
export function ownPipes(): OwnPipes {
  const pipes = open("self", identityOf(0), identityOf(1));
  if (pipes === undefined) throw new Error("the pipes of the guest daemon can't be opened");
  // Closed, so that their ends are noticed; and no later file gets these numbers.
  for (const fd of [0, 1]) {
    closeSync(fd);
    openSync("/dev/null", constants.O_RDWR);
  }
  return { ...pipes, command: new Socket({ fd: pipeOfFirstCommand, readable: false, writable: true }) };
}

function open(pid: string, input: string, output: string): TakenPipes | undefined {
  const opened: number[] = [];
  try {
    for (const [fd, mode, identity] of [
      [0, constants.O_RDONLY, input],
      [1, constants.O_WRONLY, output],
    ] as const) {
      const own = openSync(`/proc/${pid}/fd/${fd}`, mode | constants.O_NONBLOCK);
      opened.push(own);
      // Another process may have the number, in another namespace or by now.
      if (identityOf(own) !== identity) throw new Error("another process's pipe");
    }
    const [reading, writing] = opened;
    return {
      input: new Socket({ fd: reading, readable: true, writable: false }),
      output: new Socket({ fd: writing, readable: false, writable: true }),
    };
  } catch {
    // A kernel or runtime that doesn't allow it, or an end that is closed already: the attachment passes the bytes on.
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}

function identityOf(fd: number): string {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}
