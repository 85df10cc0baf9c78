// Texts of what is left out of all figures, in each language: loaded with the dialog.

import type { Language } from "../api/types.ts";
import { figure, filled, language } from "./index.ts";

export interface ExclusionTexts {
  title: string;
  text: string;
  none: string;
  leaveOut: string;
  inPeriod: string;
  visits: string;
  views: string;
  always: string;
  remove: string;
  removeOf: string;
  added: string;
  removed: string;
  suggestions: string;
  suggestionsText: string;
  searching: string;
  noFloods: string;
  flood: string;
  review: string;
  reviewOf: string;
}

export const EXCLUSION_TEXTS: Record<Language, ExclusionTexts> = {
  en: {
    title: "Left out of {hostname}",
    text: "What matches is in no figure, stored or yet to come: whole visits that match and began in the period. Nothing is deleted. Removing a rule brings everything back.",
    none: "Nothing is left out. To leave something out, filter the figures of the website first.",
    leaveOut: "Leave out what matches these filters",
    inPeriod: "Only visits that began in this period: {span}",
    visits: "{visits} visits, {views} views left out",
    views: "{views} views left out",
    always: "at any time",
    remove: "Count again",
    removeOf: "Count {name} again",
    added: "{name} is left out.",
    removed: "{name} counts again.",
    suggestions: "Suggestions",
    suggestionsText:
      "Unusual floods of visits in the last 30 days. Nothing is left out until you confirm it.",
    searching: "Looking for floods…",
    noFloods: "No unusual flood of visits in the last 30 days.",
    flood:
      "{visits} visits ({share} of all in these hours), {views} views. Usual number of such visits: {usual}",
    review: "Review…",
    reviewOf: "Review {name}",
  },
  de: {
    title: "Ausgenommen von {hostname}",
    text: "Was zutrifft, steht in keiner Zahl, ob schon gespeichert oder noch nicht: ganze Besuche, die zutreffen und im Zeitraum begannen. Nichts wird gelöscht. Ohne die Regel ist alles wieder da.",
    none: "Nichts ist ausgenommen. Filtern Sie zuerst die Zahlen der Website.",
    leaveOut: "Ausnehmen, was diesen Filtern entspricht",
    inPeriod: "Nur Besuche, die in diesem Zeitraum begannen: {span}",
    visits: "{visits} Besuche, {views} Aufrufe ausgenommen",
    views: "{views} Aufrufe ausgenommen",
    always: "jederzeit",
    remove: "Wieder zählen",
    removeOf: "{name} wieder zählen",
    added: "{name} ist ausgenommen.",
    removed: "{name} zählt wieder.",
    suggestions: "Vorschläge",
    suggestionsText:
      "Ungewöhnliche Besuchswellen der letzten 30 Tage. Nichts wird ausgenommen, bevor Sie es bestätigen.",
    searching: "Besuchswellen werden gesucht …",
    noFloods: "Keine ungewöhnliche Besuchswelle in den letzten 30 Tagen.",
    flood:
      "{visits} Besuche ({share} aller Besuche dieser Stunden), {views} Aufrufe. Übliche Zahl solcher Besuche: {usual}",
    review: "Prüfen …",
    reviewOf: "{name} prüfen",
  },
  fr: {
    title: "Exclu de {hostname}",
    text: "Ce qui correspond ne figure dans aucun chiffre, déjà enregistré ou à venir : les visites entières qui correspondent et ont commencé dans la période. Rien n’est supprimé. Retirer une règle rétablit tout.",
    none: "Rien n’est exclu. Filtrez d’abord les chiffres du site.",
    leaveOut: "Exclure ce qui correspond à ces filtres",
    inPeriod: "Seulement les visites commencées dans cette période : {span}",
    visits: "{visits} visites, {views} vues exclues",
    views: "{views} vues exclues",
    always: "à tout moment",
    remove: "Compter de nouveau",
    removeOf: "Compter {name} de nouveau",
    added: "{name} est exclu.",
    removed: "{name} compte de nouveau.",
    suggestions: "Suggestions",
    suggestionsText:
      "Afflux inhabituels de visites des 30 derniers jours. Rien n’est exclu avant votre confirmation.",
    searching: "Recherche d’afflux…",
    noFloods: "Aucun afflux inhabituel de visites ces 30 derniers jours.",
    flood:
      "{visits} visites ({share} des visites de ces heures), {views} vues. Nombre habituel de ces visites : {usual}",
    review: "Vérifier…",
    reviewOf: "Vérifier {name}",
  },
  es: {
    title: "Excluido de {hostname}",
    text: "Lo que coincide no aparece en ninguna cifra, ya guardado o por venir: las visitas enteras que coinciden y empezaron en el periodo. No se borra nada. Al quitar una regla vuelve todo.",
    none: "No hay nada excluido. Filtra primero las cifras del sitio.",
    leaveOut: "Excluir lo que coincide con estos filtros",
    inPeriod: "Solo visitas que empezaron en este periodo: {span}",
    visits: "{visits} visitas, {views} vistas excluidas",
    views: "{views} vistas excluidas",
    always: "en cualquier momento",
    remove: "Volver a contar",
    removeOf: "Volver a contar {name}",
    added: "{name} está excluido.",
    removed: "{name} vuelve a contar.",
    suggestions: "Sugerencias",
    suggestionsText:
      "Avalanchas inusuales de visitas de los últimos 30 días. No se excluye nada hasta que lo confirmes.",
    searching: "Buscando avalanchas…",
    noFloods: "Ninguna avalancha inusual de visitas en los últimos 30 días.",
    flood:
      "{visits} visitas ({share} de las visitas de esas horas), {views} vistas. Número habitual de esas visitas: {usual}",
    review: "Revisar…",
    reviewOf: "Revisar {name}",
  },
  ja: {
    title: "{hostname} で除外されるもの",
    text: "一致するものは、保存済みでもこれからでも、どの数値にも含まれません。一致し、期間内に始まった訪問全体が対象です。何も削除されません。ルールを外すとすべて元に戻ります。",
    none: "除外されているものはありません。まずサイトの数値を絞り込んでください。",
    leaveOut: "このフィルターに一致するものを除外する",
    inPeriod: "この期間に始まった訪問のみ：{span}",
    visits: "除外：訪問 {visits}、ビュー {views}",
    views: "除外：ビュー {views}",
    always: "全期間",
    remove: "再び数える",
    removeOf: "{name} を再び数える",
    added: "{name} を除外しました。",
    removed: "{name} を再び数えます。",
    suggestions: "提案",
    suggestionsText: "過去 30 日間の異常な訪問の急増です。確認するまで何も除外されません。",
    searching: "急増を探しています…",
    noFloods: "過去 30 日間に異常な訪問の急増はありません。",
    flood: "訪問 {visits}（この時間帯の全訪問の {share}）、ビュー {views}。通常の訪問数：{usual}",
    review: "確認…",
    reviewOf: "{name} を確認",
  },
  zh: {
    title: "{hostname} 中被排除的内容",
    text: "匹配的内容（无论已保存还是将来的）不计入任何数字：匹配且在该时段内开始的整个访问。不会删除任何内容。移除规则后全部恢复。",
    none: "没有排除任何内容。请先筛选网站的数字。",
    leaveOut: "排除符合这些筛选条件的内容",
    inPeriod: "仅限在此时段内开始的访问：{span}",
    visits: "已排除 {visits} 次访问、{views} 次浏览",
    views: "已排除 {views} 次浏览",
    always: "任何时间",
    remove: "重新计入",
    removeOf: "重新计入 {name}",
    added: "已排除 {name}。",
    removed: "{name} 重新计入。",
    suggestions: "建议",
    suggestionsText: "最近 30 天内异常的访问激增。在您确认之前不会排除任何内容。",
    searching: "正在查找访问激增…",
    noFloods: "最近 30 天内没有异常的访问激增。",
    flood:
      "{visits} 次访问（占这些小时全部访问的 {share}）、{views} 次浏览。此类访问的通常数量：{usual}",
    review: "查看…",
    reviewOf: "查看 {name}",
  },
};

/** Return a text in the current language, with `{name}` replaced by the value of that name. */
export function said(key: keyof ExclusionTexts, values: Record<string, string | number> = {}) {
  const shown = Object.entries(values).map(([name, value]) => [
    name,
    typeof value === "number" ? figure(value) : value,
  ]);
  return filled(EXCLUSION_TEXTS[language.value ?? "en"][key], Object.fromEntries(shown));
}
