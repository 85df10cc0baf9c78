// The entry point of the dashboard.

import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/controls.css";
import "./style/shell.css";
import "./style/view.css";
import "./style/panels.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { speakAsBefore } from "./i18n/index.ts";
import { keepFresh } from "./state/data.ts";
import { recognise } from "./state/session.ts";
import { shareId } from "./state/share.ts";

keepFresh();
const recognised = shareId ? Promise.resolve(false) : recognise();
speakAsBefore().then(() =>
  render(<App recognised={recognised} />, document.body.querySelector("#app") as Element),
);
