export type { Attributes, ReceivedLog, ReceivedPoint, ReceivedScope, ReceivedSpan } from "./received.js";
export { OtlpReceiver } from "./receiver.js";
