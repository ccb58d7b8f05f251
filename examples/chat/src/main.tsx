import { createRoot } from "react-dom/client";
import { Chat } from "./chat.js";

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<Chat />);
