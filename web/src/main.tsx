import { render } from "preact";
import { App } from "./app";
import { begin } from "./server/start";
import "./styles.css";
import "./ui/ui.css";

const root = document.getElementById("app");
if (root) void begin().then(() => render(<App />, root));
