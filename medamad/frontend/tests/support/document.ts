// Gives the tests a document, as if the dashboard had been opened.

import { GlobalRegistrator } from "@happy-dom/global-registrator";

GlobalRegistrator.register({ url: "http://localhost/dashboard/", width: 1280, height: 800 });
