// Texts of robots, in each language: loaded with their page, and with the link to it.

import type { Language, Purpose } from "../api/types.ts";
import { figure, filled, language } from "./index.ts";

type PurposeText = `purpose.${Purpose}`;

export interface RobotTexts extends Record<PurposeText, string> {
  title: string;
  link: string;
  requestsOne: string;
  requests: string;
  apart: string;
  none: string;
  noneText: string;
  purposes: string;
  robots: string;
  pages: string;
  days: string;
  count: string;
  byOperator: string;
  all: string;
  showAll: string;
  more: string;
  blindSpot: string;
  blindSpotText: string;
  loads: string;
  counted: string;
  unseen: string;
}

export const ROBOT_TEXTS: Record<Language, RobotTexts> = {
  en: {
    title: "Robots",
    link: "Robots, counted apart from people",
    requestsOne: "{n} page request by robots",
    requests: "{n} page requests by robots",
    apart: "They are in none of the other figures.",
    none: "No robots in this period",
    noneText:
      "Robots that run scripts are counted by the script; all others are counted in an access log that is imported or followed.",
    purposes: "Purposes",
    robots: "Robots",
    pages: "Pages",
    days: "Days",
    count: "Requests",
    byOperator: "{name}, {operator}",
    all: "Count all robots",
    showAll: "Show all",
    more: "{list}: show all",
    blindSpot: "What the script doesn’t see",
    blindSpotText:
      "{days}: of {loads} page loads in the server’s log, {robots} were made by robots and {counted} were counted as views. {unseen} ({share}) weren’t seen by the script.",
    loads: "Page loads",
    counted: "Counted",
    unseen: "Not seen",
    "purpose.search": "Search",
    "purpose.ai-training": "AI training",
    "purpose.ai-answer": "AI answering a person",
    "purpose.preview": "Preview",
    "purpose.monitoring": "Monitoring",
    "purpose.library": "Program or library",
    "purpose.unknown": "Unknown",
  },
  de: {
    title: "Bots",
    link: "Bots, getrennt von Menschen gezählt",
    requestsOne: "{n} Seitenabruf von Bots",
    requests: "{n} Seitenabrufe von Bots",
    apart: "In den übrigen Zahlen sind sie nicht enthalten.",
    none: "Keine Bots in diesem Zeitraum",
    noneText:
      "Bots, die Skripte ausführen, zählt das Skript; alle anderen werden in einem Zugriffsprotokoll gezählt, das importiert oder fortlaufend gelesen wird.",
    purposes: "Zwecke",
    robots: "Bots",
    pages: "Seiten",
    days: "Tage",
    count: "Abrufe",
    byOperator: "{name}, {operator}",
    all: "Alle Bots zählen",
    showAll: "Alle anzeigen",
    more: "{list}: alle anzeigen",
    blindSpot: "Was das Skript nicht sieht",
    blindSpotText:
      "{days}: Von {loads} Seitenabrufen im Protokoll des Webservers stammen {robots} von Bots, {counted} wurden als Aufrufe gezählt. {unseen} ({share}) hat das Skript nicht gesehen.",
    loads: "Seitenabrufe",
    counted: "Gezählt",
    unseen: "Nicht gesehen",
    "purpose.search": "Suche",
    "purpose.ai-training": "KI-Training",
    "purpose.ai-answer": "KI, die jemandem antwortet",
    "purpose.preview": "Vorschau",
    "purpose.monitoring": "Überwachung",
    "purpose.library": "Programm oder Bibliothek",
    "purpose.unknown": "Unbekannt",
  },
  fr: {
    title: "Robots",
    link: "Robots, comptés à part des personnes",
    requestsOne: "{n} requête de page par des robots",
    requests: "{n} requêtes de pages par des robots",
    apart: "Ils ne figurent dans aucun autre chiffre.",
    none: "Aucun robot sur cette période",
    noneText:
      "Les robots qui exécutent des scripts sont comptés par le script ; tous les autres le sont dans un journal d’accès importé ou suivi.",
    purposes: "Finalités",
    robots: "Robots",
    pages: "Pages",
    days: "Jours",
    count: "Requêtes",
    byOperator: "{name}, {operator}",
    all: "Compter tous les robots",
    showAll: "Tout afficher",
    more: "{list} : tout afficher",
    blindSpot: "Ce que le script ne voit pas",
    blindSpotText:
      "{days} : sur {loads} chargements de pages dans le journal du serveur, {robots} viennent de robots et {counted} ont été comptés comme vues. Le script n’en a pas vu {unseen} ({share}).",
    loads: "Chargements",
    counted: "Comptés",
    unseen: "Non vus",
    "purpose.search": "Recherche",
    "purpose.ai-training": "Entraînement d’IA",
    "purpose.ai-answer": "IA répondant à une personne",
    "purpose.preview": "Aperçu",
    "purpose.monitoring": "Surveillance",
    "purpose.library": "Programme ou bibliothèque",
    "purpose.unknown": "Inconnue",
  },
  es: {
    title: "Bots",
    link: "Bots, contados aparte de las personas",
    requestsOne: "{n} solicitud de página de bots",
    requests: "{n} solicitudes de páginas de bots",
    apart: "No figuran en ninguna otra cifra.",
    none: "Ningún bot en este período",
    noneText:
      "El script cuenta los bots que lo ejecutan; los demás se cuentan en un registro de acceso importado o seguido.",
    purposes: "Finalidades",
    robots: "Bots",
    pages: "Páginas",
    days: "Días",
    count: "Solicitudes",
    byOperator: "{name}, {operator}",
    all: "Contar todos los bots",
    showAll: "Mostrar todo",
    more: "{list}: mostrar todo",
    blindSpot: "Lo que el script no ve",
    blindSpotText:
      "{days}: de {loads} cargas de páginas en el registro del servidor, {robots} son de bots y {counted} se contaron como vistas. El script no vio {unseen} ({share}).",
    loads: "Cargas",
    counted: "Contadas",
    unseen: "No vistas",
    "purpose.search": "Búsqueda",
    "purpose.ai-training": "Entrenamiento de IA",
    "purpose.ai-answer": "IA que responde a una persona",
    "purpose.preview": "Vista previa",
    "purpose.monitoring": "Supervisión",
    "purpose.library": "Programa o biblioteca",
    "purpose.unknown": "Desconocida",
  },
  ja: {
    title: "ボット",
    link: "ボット（人とは別に集計）",
    requestsOne: "ボットによるページへのリクエスト：{n}件",
    requests: "ボットによるページへのリクエスト：{n}件",
    apart: "ほかの数値には含まれていません。",
    none: "この期間のボットはありません",
    noneText:
      "スクリプトを実行するボットはスクリプトが計測します。その他のボットは、インポートまたは追跡したアクセスログから計測されます。",
    purposes: "目的",
    robots: "ボット",
    pages: "ページ",
    days: "日別",
    count: "リクエスト",
    byOperator: "{name}（{operator}）",
    all: "すべてのボットを集計",
    showAll: "すべて表示",
    more: "{list}：すべて表示",
    blindSpot: "スクリプトに見えないもの",
    blindSpotText:
      "{days}：サーバーのログにあるページ読み込み{loads}件のうち、{robots}件はボットによるもので、{counted}件がビューとして計測されました。{unseen}件（{share}）はスクリプトに見えませんでした。",
    loads: "読み込み",
    counted: "計測済み",
    unseen: "未計測",
    "purpose.search": "検索",
    "purpose.ai-training": "AIの学習",
    "purpose.ai-answer": "人に回答するAI",
    "purpose.preview": "プレビュー",
    "purpose.monitoring": "監視",
    "purpose.library": "プログラム・ライブラリ",
    "purpose.unknown": "不明",
  },
  zh: {
    title: "机器人",
    link: "机器人（与真人分开统计）",
    requestsOne: "机器人的页面请求：{n} 次",
    requests: "机器人的页面请求：{n} 次",
    apart: "其他数据均不包含机器人。",
    none: "该时段内没有机器人",
    noneText: "会执行脚本的机器人由脚本统计；其他机器人从导入或持续读取的访问日志中统计。",
    purposes: "用途",
    robots: "机器人",
    pages: "页面",
    days: "日期",
    count: "请求",
    byOperator: "{name}（{operator}）",
    all: "统计所有机器人",
    showAll: "显示全部",
    more: "{list}：显示全部",
    blindSpot: "脚本看不到的部分",
    blindSpotText:
      "{days}：服务器日志中有 {loads} 次页面加载，其中 {robots} 次来自机器人，{counted} 次已计为浏览量，{unseen} 次（{share}）脚本未能看到。",
    loads: "加载次数",
    counted: "已统计",
    unseen: "未看到",
    "purpose.search": "搜索",
    "purpose.ai-training": "AI 训练",
    "purpose.ai-answer": "AI 回答用户",
    "purpose.preview": "预览",
    "purpose.monitoring": "监控",
    "purpose.library": "程序或库",
    "purpose.unknown": "未知",
  },
};

/** A text about robots, with `{name}` replaced by the value of that name. */
export function ofRobots(key: keyof RobotTexts, values: Record<string, string> = {}): string {
  return filled(ROBOT_TEXTS[language.value ?? "en"][key], values);
}

/** How many pages robots read. */
export function pagesRead(count: number): string {
  const isOne = new Intl.PluralRules(language.value).select(count) === "one";
  return ofRobots(isOne ? "requestsOne" : "requests", { n: figure(count) });
}
