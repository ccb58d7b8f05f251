/** Large inputs, read and written in turns of the event loop. */
export { jsonInTurns, jsonPieces } from "./json-pieces.js";
export { countJsonInTurns, parseJsonInTurns, storedJsonInTurns } from "./parse.js";
export { piecesOfJson } from "./pieces-of-json.js";
export { inTurns, type TextRead, textInTurns, turnToRead } from "./read.js";
