// A component whose code is loaded when it is first shown.

import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n/index.ts";

/** Return a component that renders what `load` imports, and nothing until then. */
export function later<Properties extends object>(
  load: () => Promise<ComponentType<Properties>>,
): ComponentType<Properties> {
  let loaded: ComponentType<Properties> | undefined;
  return function Later(properties: Properties) {
    const [, setLoaded] = useState(loaded !== undefined);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          setLoaded(true);
        },
        () => setFailed(true),
      );
    }, []);
    if (loaded) return h(loaded, properties);
    return hasFailed ? <Failed /> : null;
  };
}

/** The server is unreachable, or runs another build than the one this page is from. */
function Failed() {
  return (
    <div class="trouble" role="alert">
      <strong>{t("away.title")}</strong>
      <button type="button" class="button" onClick={() => location.reload()}>
        {t("common.retry")}
      </button>
    </div>
  );
}
