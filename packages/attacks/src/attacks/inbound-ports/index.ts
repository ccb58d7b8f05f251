import type { Sandbox } from "@ambit/core/plugin";
import { type Attack, type AttackOutcome, blocked, notRun, reached, type Stage } from "../attack.js";
import { enter, isAnswered, tryPort } from "./enter.js";
import { type ServerInside, withServer } from "./server-inside.js";

const capability = "inbound.ports";

export const inboundPorts = [
  {
    id: `${capability}/host-loopback`,
    capability,
    title: "reach a server on the host's loopback by a listed port",
    perform: (stage) =>
      withReachedServer(stage, ({ sandbox }) =>
        outcomeAt(sandbox, stage.decoys.onLoopback.port, stage.decoys.secret),
      ),
  },
  {
    id: `${capability}/unlisted-port`,
    capability,
    stoppedBy: ["inbound port list"],
    title: "reach a server inside on a port that isn't listed",
    perform: (stage) =>
      withReachedServer(stage, ({ sandbox }, { unlisted, answer }) => outcomeAt(sandbox, unlisted, answer)),
  },
  {
    id: `${capability}/another-session`,
    capability,
    title: "reach another session's server by a port that is listed for both",
    perform: async (stage) => {
      const other = await stage.openAnother();
      const attempt = ({ listed, answer }: ServerInside) =>
        withReachedServer(stage, ({ sandbox }) => outcomeAt(sandbox, listed, answer), listed);
      return withServer(stage, other, attempt, { answer: stage.decoys.secret });
    },
  },
  {
    id: `${capability}/outlive-close`,
    capability,
    stoppedBy: ["inbound relay", "pid namespace"],
    title: "reach a server inside when its sandbox has closed",
    perform: async (stage) => {
      const other = await stage.openAnother();
      const attempt = (server: ServerInside) => afterClose(other, server);
      return withServer(stage, other, attempt, { detached: true });
    },
  },
] as const satisfies readonly Attack[];

/** With a server that is reached on a listed port: where nothing gets in, a refusal says nothing. */
function withReachedServer(
  stage: Stage,
  attempt: (stage: Stage, server: ServerInside) => Promise<AttackOutcome>,
  not?: number,
): Promise<AttackOutcome> {
  const work = async (server: ServerInside) => {
    const { isReached, detail } = await tryPort(stage.sandbox, server.listed, server.answer);
    return isReached ? attempt(stage, server) : notRun(`the listed port isn't reached either: ${detail}`);
  };
  return withServer(stage, stage.sandbox, work, not === undefined ? {} : { not });
}

async function outcomeAt(sandbox: Sandbox, port: number, words: string): Promise<AttackOutcome> {
  const { isReached, detail } = await tryPort(sandbox, port, words);
  return isReached ? reached(detail) : blocked(detail);
}

/** By a connection from before, which must end, and by a new one. */
async function afterClose(sandbox: Sandbox, { listed, answer }: ServerInside): Promise<AttackOutcome> {
  const connection = await enter(sandbox, listed);
  if (typeof connection === "string") return notRun(`nothing got in before either: ${connection}`);
  try {
    if (!(await isAnswered(connection, answer))) return notRun("nothing answered before either");
    await sandbox.close();
    if (await isAnswered(connection, answer)) return reached("an earlier connection still answers");
    if (!connection.destroyed && !connection.readableEnded) return reached("an earlier connection is open");
    return await outcomeAt(sandbox, listed, answer);
  } finally {
    connection.destroy();
  }
}
