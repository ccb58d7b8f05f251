import { useEffect, useState } from "react";
import type { RunPlace } from "../../server/client.js";
import { RunLog } from "../../server/run-log.js";

/** The events of a run, read while its screen is shown. */
export function useRunLog(place: RunPlace): RunLog | undefined {
  const { runId, projectId } = place;
  const [log, setLog] = useState<RunLog>();
  useEffect(() => {
    const runLog = new RunLog({ runId, projectId });
    setLog(runLog);
    return () => runLog.leave();
  }, [runId, projectId]);
  return log;
}
