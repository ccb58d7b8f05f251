export { cgroupNames, createCgroups, removeCgroups } from "./cgroups.js";
export { imageArchive } from "./image.js";
export { createOwnedFolder, isLeft, leftNames, type OwnedFolder, ownerOf } from "./owned.js";
