// A visitor's choice not to be counted, as the tracker keeps it: a mark in the local storage of the
// website. The element <script src=".../event/opt-out.js"></script> shows the choice where it is on
// a page, and a button to change it. The tracker imports this script after #medamad-ignore or
// #medamad-count, to have it say what was chosen.

/** What a language calls the choice: counted, not counted, and that it cannot be kept; buttons. */
type Texts = [counted: string, ignored: string, refused: string, ignore: string, count: string];

const TEXTS: Record<string, Texts> = {
  en: [
    "Visits to this website from this browser are counted.",
    "Visits to this website from this browser are not counted.",
    "This browser does not let this website keep a choice. Visits from it are counted.",
    "Do not count this browser",
    "Count this browser",
  ],
  de: [
    "Besuche dieser Website mit diesem Browser werden gezählt.",
    "Besuche dieser Website mit diesem Browser werden nicht gezählt.",
    "Dieser Browser lässt die Website keine Auswahl speichern. Besuche mit ihm werden gezählt.",
    "Diesen Browser nicht zählen",
    "Diesen Browser zählen",
  ],
  fr: [
    "Les visites de ce site avec ce navigateur sont comptées.",
    "Les visites de ce site avec ce navigateur ne sont pas comptées.",
    "Ce navigateur ne permet pas au site d’enregistrer un choix. Ses visites sont comptées.",
    "Ne pas compter ce navigateur",
    "Compter ce navigateur",
  ],
  es: [
    "Las visitas a este sitio web con este navegador se cuentan.",
    "Las visitas a este sitio web con este navegador no se cuentan.",
    "Este navegador no permite que el sitio web guarde una elección. Sus visitas se cuentan.",
    "No contar este navegador",
    "Contar este navegador",
  ],
  ja: [
    "このブラウザーからのこのサイトへの訪問は集計されます。",
    "このブラウザーからのこのサイトへの訪問は集計されません。",
    "このブラウザーではサイトが選択を保存できません。訪問は集計されます。",
    "このブラウザーを集計しない",
    "このブラウザーを集計する",
  ],
  zh: [
    "此浏览器对本网站的访问会被统计。",
    "此浏览器对本网站的访问不会被统计。",
    "此浏览器不允许本网站保存选择。它的访问会被统计。",
    "不统计此浏览器",
    "统计此浏览器",
  ],
};

const element = document.currentScript;
const root = document.documentElement;

/** The language of the place on the page, else the first of the browser's that has texts. */
const language =
  [element?.closest<HTMLElement>("[lang]")?.lang ?? root.lang, ...navigator.languages]
    .map((tag) => tag.slice(0, 2).toLowerCase())
    .find((tag) => tag in TEXTS) ?? "en";
const [counted, ignored, refused, ignore, count] = TEXTS[language] as Texts;

/** Whether the browser is ignored; undefined if it keeps no mark. */
const isIgnored = (): boolean | undefined => {
  try {
    return localStorage.medamad === "ignore";
  } catch {
    return undefined;
  }
};

const statement = () => {
  const choice = isIgnored();
  return choice === undefined ? refused : choice ? ignored : counted;
};

if (element) {
  const place = document.createElement("p");
  const said = document.createElement("span");
  const button = document.createElement("button");
  place.className = "medamad-opt-out";
  place.lang = language;
  said.setAttribute("role", "status");
  button.type = "button";

  const show = () => {
    said.textContent = statement();
    button.textContent = isIgnored() ? count : ignore;
    button.hidden = isIgnored() === undefined;
  };
  button.onclick = () => {
    try {
      localStorage.medamad = isIgnored() ? "count" : "ignore";
    } catch {
      // The storage may be full.
      said.textContent = refused;
      return;
    }
    show();
    // The tracker, if it is on this page, reads the mark again, and ends the view or begins one.
    dispatchEvent(new Event("visibilitychange"));
  };
  show();
  place.append(said, " ", button);
  element.after(place);
} else {
  const say = () => {
    if (/^#medamad-(ignore|count)$/.test(location.hash)) alert(statement());
  };
  // Imported once, however often the fragment changes.
  addEventListener("popstate", say);
  say();
}

// A module of its own, for TypeScript; what is built is a plain script.
export {};
