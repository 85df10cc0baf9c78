// Texts of what changed, in each language: loaded with the dialog, since few open it.

import type { Language } from "../api/types.ts";

/** What a text about one part calls its dimension. */
type Dimensions = Record<"source" | "entry_page" | "country" | "device" | "campaign", string>;

export interface ChangeTexts extends Dimensions {
  title: string;
  figure: string;
  conversions: string;
  revenue: string;
  up: string;
  down: string;
  level: string;
  changed: string;
  asBefore: string;
  standsOut: string;
  nothing: string;
  alike: string;
  fewWeeks: string;
  unknownDays: string;
  part: string;
  before: string;
  now: string;
  rest: string;
  others: string;
  pairs: string;
  legend: string;
  addUp: string;
  noSum: string;
  ofViews: string;
  ofConversions: string;
  overlap: string;
}

export const CHANGE_TEXTS: Record<Language, ChangeTexts> = {
  en: {
    title: "What changed",
    figure: "Figure",
    conversions: "Conversions: {goal}",
    revenue: "Revenue: {goal}",
    up: "up by {n}, from {before} to {now}",
    down: "down by {n}, from {before} to {now}",
    level: "unchanged at {now}",
    changed: "{name}: {moved}.",
    asBefore:
      "{name}: about as before, {now} after {before}. Chance explains a difference like this.",
    standsOut: "What stands out: {parts}, {moved}.",
    nothing: "No part changed by more than chance explains.",
    alike: "No part stands out: all changed alike.",
    fewWeeks: "Fewer than four earlier weeks are known, so this may be chance.",
    unknownDays: "Some days are only partly known, so this may be chance.",
    part: "{dimension} “{name}”",
    source: "source",
    entry_page: "entry page",
    country: "country",
    device: "device",
    campaign: "campaign",
    before: "Before",
    now: "Now",
    rest: "About as before",
    others: "All others ({n})",
    pairs: "What stands out",
    legend: "≈ About as before: chance explains the difference.",
    addUp:
      "Each counts under one source, entry page, country, device and campaign, so the rows of each table add up to the whole.",
    noSum:
      "{measure} can’t be split: rates, means and medians aren’t the sum of their parts. This is what changed in other figures.",
    ofViews: "Views are those of the visits that began in the period.",
    ofConversions: "Conversions are counted once per visit here.",
    overlap: "One of the two periods contains the other, so their difference can’t be split.",
  },
  de: {
    title: "Was sich geändert hat",
    figure: "Kennzahl",
    conversions: "Conversions: {goal}",
    revenue: "Umsatz: {goal}",
    up: "{n} mehr, von {before} auf {now}",
    down: "{n} weniger, von {before} auf {now}",
    level: "unverändert bei {now}",
    changed: "{name}: {moved}.",
    asBefore:
      "{name}: etwa wie zuvor, {now} nach {before}. Ein solcher Unterschied kann Zufall sein.",
    standsOut: "Auffällig: {parts}, {moved}.",
    nothing: "Kein Teil hat sich stärker geändert, als es Zufall erklärt.",
    alike: "Kein Teil fällt auf: Alle haben sich gleich geändert.",
    fewWeeks: "Weniger als vier frühere Wochen sind bekannt, es kann also Zufall sein.",
    unknownDays: "Einige Tage sind nur zum Teil bekannt, es kann also Zufall sein.",
    part: "{dimension} „{name}“",
    source: "Quelle",
    entry_page: "Einstiegsseite",
    country: "Land",
    device: "Gerät",
    campaign: "Kampagne",
    before: "Zuvor",
    now: "Jetzt",
    rest: "Etwa wie zuvor",
    others: "Alle übrigen ({n})",
    pairs: "Auffällig",
    legend: "≈ Etwa wie zuvor: Der Unterschied kann Zufall sein.",
    addUp:
      "Alles zählt unter genau einer Quelle, einer Einstiegsseite, einem Land, einem Gerät und einer Kampagne; die Zeilen jeder Tabelle ergeben daher das Ganze.",
    noSum:
      "{measure} lässt sich nicht aufteilen: Quoten, Durchschnitte und Mediane sind nicht die Summe ihrer Teile. Hier steht, was sich bei anderen Kennzahlen geändert hat.",
    ofViews: "Gezählt sind die Seitenaufrufe der Besuche, die im Zeitraum begannen.",
    ofConversions: "Conversions zählen hier einmal je Besuch.",
    overlap:
      "Einer der beiden Zeiträume enthält den anderen, ihr Unterschied lässt sich daher nicht aufteilen.",
  },
  fr: {
    title: "Ce qui a changé",
    figure: "Indicateur",
    conversions: "Conversions : {goal}",
    revenue: "Revenus : {goal}",
    up: "{n} de plus, de {before} à {now}",
    down: "{n} de moins, de {before} à {now}",
    level: "inchangé, à {now}",
    changed: "{name} : {moved}.",
    asBefore:
      "{name} : à peu près comme avant, {now} après {before}. Le hasard explique une telle différence.",
    standsOut: "À noter : {parts}, {moved}.",
    nothing: "Aucune partie n’a changé plus que le hasard ne l’explique.",
    alike: "Aucune partie ne se distingue : toutes ont changé de la même façon.",
    fewWeeks: "Moins de quatre semaines antérieures sont connues : ce peut être le hasard.",
    unknownDays: "Certains jours ne sont connus qu’en partie : ce peut être le hasard.",
    part: "{dimension} « {name} »",
    source: "source",
    entry_page: "page d’entrée",
    country: "pays",
    device: "appareil",
    campaign: "campagne",
    before: "Avant",
    now: "Maintenant",
    rest: "À peu près comme avant",
    others: "Tous les autres ({n})",
    pairs: "À noter",
    legend: "≈ À peu près comme avant : le hasard explique la différence.",
    addUp:
      "Chaque unité compte pour une source, une page d’entrée, un pays, un appareil et une campagne : les lignes de chaque tableau donnent donc le total.",
    noSum:
      "{measure} : ne peut être décomposé, car les taux, moyennes et médianes ne sont pas la somme de leurs parties. Voici ce qui a changé pour d’autres indicateurs.",
    ofViews: "Les pages vues sont celles des visites commencées pendant la période.",
    ofConversions: "Les conversions sont comptées ici une fois par visite.",
    overlap: "L’une des deux périodes contient l’autre : leur différence ne peut être décomposée.",
  },
  es: {
    title: "Qué ha cambiado",
    figure: "Métrica",
    conversions: "Conversiones: {goal}",
    revenue: "Ingresos: {goal}",
    up: "{n} más, de {before} a {now}",
    down: "{n} menos, de {before} a {now}",
    level: "sin cambios, {now}",
    changed: "{name}: {moved}.",
    asBefore:
      "{name}: más o menos como antes, {now} tras {before}. El azar explica una diferencia así.",
    standsOut: "Destaca: {parts}, {moved}.",
    nothing: "Ninguna parte ha cambiado más de lo que explica el azar.",
    alike: "Ninguna parte destaca: todas han cambiado por igual.",
    fewWeeks: "Se conocen menos de cuatro semanas anteriores, así que puede ser azar.",
    unknownDays: "Algunos días solo se conocen en parte, así que puede ser azar.",
    part: "{dimension} «{name}»",
    source: "fuente",
    entry_page: "página de entrada",
    country: "país",
    device: "dispositivo",
    campaign: "campaña",
    before: "Antes",
    now: "Ahora",
    rest: "Más o menos como antes",
    others: "Todo lo demás ({n})",
    pairs: "Destaca",
    legend: "≈ Más o menos como antes: el azar explica la diferencia.",
    addUp:
      "Cada unidad cuenta en una fuente, una página de entrada, un país, un dispositivo y una campaña, así que las filas de cada tabla suman el total.",
    noSum:
      "{measure}: no se puede desglosar, porque las tasas, medias y medianas no son la suma de sus partes. Esto es lo que ha cambiado en otras métricas.",
    ofViews: "Las vistas son las de las visitas que comenzaron en el periodo.",
    ofConversions: "Aquí las conversiones se cuentan una vez por visita.",
    overlap:
      "Uno de los dos periodos contiene al otro, así que su diferencia no se puede desglosar.",
  },
  ja: {
    title: "変化の内訳",
    figure: "指標",
    conversions: "コンバージョン：{goal}",
    revenue: "収益：{goal}",
    up: "{before}から{now}へ{n}増加",
    down: "{before}から{now}へ{n}減少",
    level: "{now}で変化なし",
    changed: "{name}：{moved}しました。",
    asBefore: "{name}：{before}から{now}へ、ほぼ横ばいです。この程度の差は偶然で説明できます。",
    standsOut: "目立つ変化：{parts}が{moved}。",
    nothing: "偶然で説明できる範囲を超えて変化した部分はありません。",
    alike: "目立つ部分はありません。すべて同じように変化しました。",
    fewWeeks: "過去の週のデータが4週間に満たないため、偶然の可能性があります。",
    unknownDays: "一部しかわからない日があるため、偶然の可能性があります。",
    part: "{dimension}「{name}」",
    source: "参照元",
    entry_page: "入口ページ",
    country: "国・地域",
    device: "デバイス",
    campaign: "キャンペーン",
    before: "以前",
    now: "今回",
    rest: "ほぼ横ばい",
    others: "その他すべて（{n}件）",
    pairs: "目立つ変化",
    legend: "≈ ほぼ横ばい：差は偶然で説明できます。",
    addUp:
      "それぞれ1つの参照元、入口ページ、国・地域、デバイス、キャンペーンに数えられるため、各表の行を合計すると全体になります。",
    noSum:
      "{measure}の内訳は示せません。率、平均、中央値は部分の合計ではないためです。ほかの指標の変化を示します。",
    ofViews: "ページビュー数は、この期間に始まった訪問のものです。",
    ofConversions: "ここでは、コンバージョンは訪問ごとに1回だけ数えます。",
    overlap: "一方の期間がもう一方を含んでいるため、差の内訳は示せません。",
  },
  zh: {
    title: "变化明细",
    figure: "指标",
    conversions: "转化：{goal}",
    revenue: "收入：{goal}",
    up: "增加 {n}，从 {before} 到 {now}",
    down: "减少 {n}，从 {before} 到 {now}",
    level: "保持 {now} 不变",
    changed: "{name}：{moved}。",
    asBefore: "{name}：与之前大致持平，从 {before} 到 {now}。这样的差异可以用偶然解释。",
    standsOut: "较突出的变化：{parts}，{moved}。",
    nothing: "没有任何部分的变化超出偶然所能解释的范围。",
    alike: "没有特别突出的部分：各部分的变化一致。",
    fewWeeks: "已知的前几周不足四周，因此可能是偶然。",
    unknownDays: "有些日期的数据不完整，因此可能是偶然。",
    part: "{dimension}“{name}”",
    source: "来源",
    entry_page: "入口页面",
    country: "国家/地区",
    device: "设备",
    campaign: "广告系列",
    before: "之前",
    now: "现在",
    rest: "与之前大致持平",
    others: "其他所有（{n}）",
    pairs: "较突出的变化",
    legend: "≈ 与之前大致持平：差异可以用偶然解释。",
    addUp:
      "每一项只计入一个来源、入口页面、国家/地区、设备和广告系列，因此每张表的各行相加即为总数。",
    noSum: "{measure}无法拆分：比率、平均值和中位数不是各部分之和。下面是其他指标的变化。",
    ofViews: "浏览量是指在此期间开始的访问的浏览量。",
    ofConversions: "此处每次访问的转化只计一次。",
    overlap: "其中一个时段包含另一个时段，因此无法拆分其差异。",
  },
};
