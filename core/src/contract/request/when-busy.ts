import { z } from "zod";

/** What happens to a run while another one has its session. */
export const whenBusySchema = z.enum(["refuse", "queue", "interrupt"]);

/** Whether this run waits while another one has its session. Default: it is refused. */
export function waitsForSession(request: {
  readonly whenBusy?: z.infer<typeof whenBusySchema>;
  readonly sessionId?: string;
}): boolean {
  return request.sessionId !== undefined && (request.whenBusy ?? "refuse") !== "refuse";
}
