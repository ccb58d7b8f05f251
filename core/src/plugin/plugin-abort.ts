import { setMaxListeners } from "node:events";

/** Far more than one run ever has. 0, which means no limit, breaks clients that raise the limit they find. */
const mostListeners = 10_000;

/** An abort controller for a plugin's work. Its signal may have many listeners, one for each open call, which is no leak. */
export function newPluginAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(mostListeners, controller.signal);
  return controller;
}
