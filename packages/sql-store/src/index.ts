export {
  type ChunkToAppend,
  Columns,
  type Database,
  diskFull,
  type Essential,
  type Row,
  type Statement,
  type Value,
} from "./database.js";
export { sqlStore } from "./sql-store.js";
