// What is further down on a website's page, and loaded once the rest is there.

import { ChevronRight } from "lucide";
import { ofRobots } from "../i18n/robots.ts";
import { robotsPath } from "../robots/path.ts";
import { Icon } from "../ui/icon.tsx";
import { writeView } from "../view/address.ts";
import { useViewing } from "../view/page-state.ts";
import { GoalsPanel } from "./goals.tsx";
import { PropertiesPanel } from "./properties.tsx";

export function LowerPanels() {
  const { hostname, view } = useViewing();
  return (
    <>
      <GoalsPanel />
      <PropertiesPanel />
      <p class="panel-wide">
        <a class="quiet" href={robotsPath(hostname) + writeView(view)}>
          {ofRobots("link")} <Icon of={ChevronRight} size={16} />
        </a>
      </p>
    </>
  );
}
