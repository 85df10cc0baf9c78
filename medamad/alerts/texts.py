"""What alerts say, in the six languages. Terms are those of the dashboard's catalogues."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from attrs import frozen
from babel.dates import format_datetime
from babel.numbers import format_decimal

from medamad.domain.alerts import PARTS, Event, Facts, Rule
from medamad.mail.words import Words

_TIMES: Final = ("last", "hour")
"""The facts that are times, in Unix seconds."""

_EN: Final = {
    "quiet": (
        "{website} has gone quiet: its last view was on {last}.",
        "{website} has views again.",
    ),
    "spike": (
        "Views of {website} in the hour from {hour}: {views}, {percent}% more than usual at this hour of the week ({usual}).",
        "{website} has about as many views as usual again, after more from {hour} on.",
    ),
    "drop": (
        "Views of {website} in the hour from {hour}: {views}, {percent}% fewer than usual at this hour of the week ({usual}).",
        "{website} has about as many views as usual again, after fewer from {hour} on.",
    ),
    "referrer": (
        "{website} has a new referrer: {referrer}, with {visits} visits in 24 hours.",
        "The new referrer {referrer} of {website} has no more than {threshold} visits in 24 hours any more.",
    ),
    "goal": (
        "The goal {goal} of {website} was reached. Conversions in the last {hours} h: {count}.",
        "The goal {goal} of {website}: conversions in the last {hours} h are below {threshold} again.",
    ),
    "no-goal": (
        "The goal {goal} of {website} was not reached in the last {hours} h.",
        "The goal {goal} of {website} is being reached again.",
    ),
    "disk": (
        "The disk of the store has {free} GiB left.",
        "The disk of the store has at least {threshold} GiB left again.",
    ),
    "backup": ("The backups need attention: {reason}", "The backups are up to date again."),
    "limits": (
        "{limited} has used up its daily limit on new values: {dimension}.",
        "{limited} has room for new values again: {dimension}.",
    ),
    "damage": (
        "The store has damaged data: {place}",
        "The store has no damaged data any more.",
    ),
    "import": (
        "An import into {imported} failed: {reason}",
        "An import into {imported} was complete again.",
    ),
    "test": (
        "This is a test. At the moment, the alert would say: {sentences}",
        "This is a test. At the moment, the alert has nothing to report.",
    ),
}
_DE: Final = {
    "quiet": (
        "{website} ist verstummt: Der letzte Seitenaufruf war am {last}.",
        "{website} hat wieder Seitenaufrufe.",
    ),
    "spike": (
        "Seitenaufrufe von {website} in der Stunde ab {hour}: {views}, {percent} % mehr als sonst zu dieser Stunde der Woche ({usual}).",
        "{website} hat wieder etwa so viele Seitenaufrufe wie sonst; ab {hour} waren es mehr.",
    ),
    "drop": (
        "Seitenaufrufe von {website} in der Stunde ab {hour}: {views}, {percent} % weniger als sonst zu dieser Stunde der Woche ({usual}).",
        "{website} hat wieder etwa so viele Seitenaufrufe wie sonst; ab {hour} waren es weniger.",
    ),
    "referrer": (
        "{website} hat einen neuen Referrer: {referrer}, mit {visits} Besuchen in 24 Stunden.",
        "Der neue Referrer {referrer} von {website} hat in 24 Stunden nicht mehr als {threshold} Besuche.",
    ),
    "goal": (
        "Das Ziel {goal} von {website} wurde in den letzten {hours} h {count}-mal erreicht.",
        "Das Ziel {goal} von {website} wurde in den letzten {hours} h weniger als {threshold}-mal erreicht.",
    ),
    "no-goal": (
        "Das Ziel {goal} von {website} wurde in den letzten {hours} h nicht erreicht.",
        "Das Ziel {goal} von {website} wird wieder erreicht.",
    ),
    "disk": (
        "Auf der Festplatte der Datenbank sind noch {free} GiB frei.",
        "Auf der Festplatte der Datenbank sind wieder mindestens {threshold} GiB frei.",
    ),
    "backup": (
        "Die Backups brauchen Aufmerksamkeit: {reason}",
        "Die Backups sind wieder aktuell.",
    ),
    "limits": (
        "{limited} hat die Tagesgrenze für neue Werte erreicht: {dimension}.",
        "{limited} hat wieder Platz für neue Werte: {dimension}.",
    ),
    "damage": (
        "Die Datenbank hat beschädigte Daten: {place}",
        "Die Datenbank hat keine beschädigten Daten mehr.",
    ),
    "import": (
        "Ein Import in {imported} ist gescheitert: {reason}",
        "Ein Import in {imported} war wieder vollständig.",
    ),
    "test": (
        "Dies ist ein Test. Im Moment würde der Alarm melden: {sentences}",
        "Dies ist ein Test. Im Moment hat der Alarm nichts zu melden.",
    ),
}
_FR: Final = {
    "quiet": (
        "{website} ne reçoit plus de visites : sa dernière page vue date du {last}.",
        "{website} a de nouveau des pages vues.",
    ),
    "spike": (
        "Pages vues de {website} dans l’heure à partir du {hour} : {views}, soit {percent} % de plus que d’habitude à cette heure de la semaine ({usual}).",
        "{website} a de nouveau à peu près autant de pages vues que d’habitude, après une hausse à partir du {hour}.",
    ),
    "drop": (
        "Pages vues de {website} dans l’heure à partir du {hour} : {views}, soit {percent} % de moins que d’habitude à cette heure de la semaine ({usual}).",
        "{website} a de nouveau à peu près autant de pages vues que d’habitude, après une baisse à partir du {hour}.",
    ),
    "referrer": (
        "{website} a un nouveau site référent : {referrer}, avec {visits} visites en 24 heures.",
        "Le nouveau site référent {referrer} de {website} n’a plus que {threshold} visites au plus en 24 heures.",
    ),
    "goal": (
        "L’objectif {goal} de {website} a été atteint {count} fois en {hours} h.",
        "L’objectif {goal} de {website} a été atteint moins de {threshold} fois en {hours} h.",
    ),
    "no-goal": (
        "L’objectif {goal} de {website} n’a pas été atteint en {hours} h.",
        "L’objectif {goal} de {website} est de nouveau atteint.",
    ),
    "disk": (
        "Il reste {free} Gio sur le disque de la base.",
        "Il reste de nouveau au moins {threshold} Gio sur le disque de la base.",
    ),
    "backup": (
        "Les sauvegardes demandent votre attention : {reason}",
        "Les sauvegardes sont de nouveau à jour.",
    ),
    "limits": (
        "{limited} a épuisé sa limite quotidienne de nouvelles valeurs : {dimension}.",
        "{limited} peut de nouveau recevoir de nouvelles valeurs : {dimension}.",
    ),
    "damage": (
        "La base contient des données endommagées : {place}",
        "La base ne contient plus de données endommagées.",
    ),
    "import": (
        "Une importation dans {imported} a échoué : {reason}",
        "Une importation dans {imported} a de nouveau réussi.",
    ),
    "test": (
        "Ceci est un test. En ce moment, l’alerte signalerait : {sentences}",
        "Ceci est un test. En ce moment, l’alerte n’a rien à signaler.",
    ),
}
_ES: Final = {
    "quiet": (
        "{website} ha dejado de recibir visitas: su última vista fue el {last}.",
        "{website} vuelve a tener vistas.",
    ),
    "spike": (
        "Vistas de {website} en la hora a partir del {hour}: {views}, un {percent} % más de lo habitual a esta hora de la semana ({usual}).",
        "{website} vuelve a tener más o menos las vistas habituales, tras un aumento a partir del {hour}.",
    ),
    "drop": (
        "Vistas de {website} en la hora a partir del {hour}: {views}, un {percent} % menos de lo habitual a esta hora de la semana ({usual}).",
        "{website} vuelve a tener más o menos las vistas habituales, tras un descenso a partir del {hour}.",
    ),
    "referrer": (
        "{website} tiene una nueva referencia: {referrer}, con {visits} visitas en 24 horas.",
        "La nueva referencia {referrer} de {website} ya no tiene más de {threshold} visitas en 24 horas.",
    ),
    "goal": (
        "Se alcanzó el objetivo {goal} de {website}. Conversiones en las últimas {hours} h: {count}.",
        "El objetivo {goal} de {website}: las conversiones en las últimas {hours} h vuelven a ser menos de {threshold}.",
    ),
    "no-goal": (
        "El objetivo {goal} de {website} no se alcanzó en las últimas {hours} h.",
        "El objetivo {goal} de {website} se vuelve a alcanzar.",
    ),
    "disk": (
        "Al disco de la base de datos le quedan {free} GiB.",
        "Al disco de la base de datos le quedan de nuevo al menos {threshold} GiB.",
    ),
    "backup": (
        "Las copias de seguridad requieren atención: {reason}",
        "Las copias de seguridad vuelven a estar al día.",
    ),
    "limits": (
        "{limited} ha agotado su límite diario de valores nuevos: {dimension}.",
        "{limited} vuelve a admitir valores nuevos: {dimension}.",
    ),
    "damage": (
        "La base de datos tiene datos dañados: {place}",
        "La base de datos ya no tiene datos dañados.",
    ),
    "import": (
        "Una importación en {imported} ha fallado: {reason}",
        "Una importación en {imported} se ha vuelto a completar.",
    ),
    "test": (
        "Esto es una prueba. En este momento, la alerta diría: {sentences}",
        "Esto es una prueba. En este momento, la alerta no tiene nada que notificar.",
    ),
}
_JA: Final = {
    "quiet": (
        "{website} へのアクセスが途絶えています。最後のページビューは {last} です。",
        "{website} に再びページビューがあります。",
    ),
    "spike": (
        "{website} の {hour} からの 1 時間のページビューは {views} 件で、この曜日と時刻の通常（{usual} 件）より {percent}% 多くなっています。",
        "{website} のページビューは、{hour} からの増加のあと、ほぼ通常どおりに戻りました。",
    ),
    "drop": (
        "{website} の {hour} からの 1 時間のページビューは {views} 件で、この曜日と時刻の通常（{usual} 件）より {percent}% 少なくなっています。",
        "{website} のページビューは、{hour} からの減少のあと、ほぼ通常どおりに戻りました。",
    ),
    "referrer": (
        "{website} に新しいリファラーがあります：{referrer}（24 時間で訪問 {visits} 件）。",
        "{website} の新しいリファラー {referrer} の訪問は、24 時間で {threshold} 件以下になりました。",
    ),
    "goal": (
        "{website} の目標「{goal}」への到達は {hours} 時間以内に {count} 回ありました。",
        "{website} の目標「{goal}」への到達は、直近 {hours} 時間で {threshold} 回未満になりました。",
    ),
    "no-goal": (
        "{website} の目標「{goal}」への到達は {hours} 時間ありませんでした。",
        "{website} の目標「{goal}」への到達が再びあります。",
    ),
    "disk": (
        "データベースのディスクの空きは残り {free} GiB です。",
        "データベースのディスクの空きは再び {threshold} GiB 以上あります。",
    ),
    "backup": (
        "バックアップを確認してください：{reason}",
        "バックアップは再び最新の状態です。",
    ),
    "limits": (
        "{limited} は新しい値の 1 日の上限に達しました：{dimension}。",
        "{limited} は再び新しい値を受け入れられます：{dimension}。",
    ),
    "damage": (
        "データベースに破損したデータがあります：{place}",
        "データベースに破損したデータはなくなりました。",
    ),
    "import": (
        "{imported} へのインポートに失敗しました：{reason}",
        "{imported} へのインポートが再び完了しました。",
    ),
    "test": (
        "これはテストです。現在、このアラートの内容は次のとおりです：{sentences}",
        "これはテストです。現在、このアラートが知らせることはありません。",
    ),
}
_ZH: Final = {
    "quiet": (
        "{website} 已没有访问：最后一次浏览是在 {last}。",
        "{website} 又有浏览了。",
    ),
    "spike": (
        "{website} 从 {hour} 起的一小时有 {views} 次浏览，比每周此时的通常水平（{usual}）多 {percent}%。",
        "{website} 的浏览量在 {hour} 起偏多之后，已基本恢复通常水平。",
    ),
    "drop": (
        "{website} 从 {hour} 起的一小时有 {views} 次浏览，比每周此时的通常水平（{usual}）少 {percent}%。",
        "{website} 的浏览量在 {hour} 起偏少之后，已基本恢复通常水平。",
    ),
    "referrer": (
        "{website} 有新的引荐来源：{referrer}，24 小时内有 {visits} 次访问。",
        "{website} 的新引荐来源 {referrer} 在 24 小时内的访问已不超过 {threshold} 次。",
    ),
    "goal": (
        "{website} 的目标“{goal}”在 {hours} 小时内达到了 {count} 次。",
        "{website} 的目标“{goal}”在最近 {hours} 小时内达到不足 {threshold} 次。",
    ),
    "no-goal": (
        "{website} 的目标“{goal}”在 {hours} 小时内没有达到。",
        "{website} 的目标“{goal}”又有达到了。",
    ),
    "disk": (
        "数据库所在磁盘还剩 {free} GiB。",
        "数据库所在磁盘又有至少 {threshold} GiB 可用空间。",
    ),
    "backup": ("备份需要注意：{reason}", "备份又是最新的了。"),
    "limits": (
        "{limited} 已用完每天的新值上限：{dimension}。",
        "{limited} 又可以接受新值了：{dimension}。",
    ),
    "damage": ("数据库有损坏的数据：{place}", "数据库不再有损坏的数据。"),
    "import": (
        "导入到 {imported} 失败：{reason}",
        "导入到 {imported} 又已完成。",
    ),
    "test": (
        "这是一次测试。此刻该警报会说：{sentences}",
        "这是一次测试。此刻该警报没有需要报告的内容。",
    ),
}

SENTENCES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "en": _EN,
    "de": _DE,
    "fr": _FR,
    "es": _ES,
    "ja": _JA,
    "zh": _ZH,
}
"""By language and kind, what is said when a cause begins, and when it has ended.

Of a test, what is said if there are causes, and if there are none.
"""
_CHANGED: Final[Mapping[str, str]] = {
    "en": "Visits in this hour, against the same hour a week before: {sentences}",
    "de": "Besuche in dieser Stunde, gegenüber derselben Stunde der Vorwoche: {sentences}",
    "fr": "Visites de cette heure, par rapport à la même heure une semaine plus tôt : {sentences}",
    "es": "Visitas en esta hora, frente a la misma hora de la semana anterior: {sentences}",
    "ja": "この 1 時間の訪問（前週の同じ時刻との比較）：{sentences}",
    "zh": "这一小时的访问与前一周同一时段相比：{sentences}",
}
"""By language, what the parts that changed begin with."""
_LOCALES: Final[Mapping[str, str]] = {"zh": "zh_Hans"}


@frozen
class Speaker:
    """Says what alerts found, in a language and with the clock of a time zone."""

    language: str
    zone: tzinfo

    def sentence(self, rule: Rule, event: Event, facts: Facts, website: str) -> str:
        """Return what is said when a cause begins or has ended. `website` is "" for the service."""
        texts = SENTENCES[self.language][rule.kind]
        shown = {name: self._shown(name, value) for name, value in facts.items()}
        threshold = self._shown("threshold", rule.threshold or 0)
        said = texts[event == "ended"].format(**shown, threshold=threshold, website=website)
        changed = facts.get(PARTS)
        if event == "ended" or not isinstance(changed, list) or not changed:
            return said
        words = Words.of(self.language)
        sentences = " ".join(
            words.part_sentence(
                ((part.dimension, part.name) for part in each.parts), each.before, each.now
            )
            for each in changed
        )
        return f"{said} {_CHANGED[self.language].format(sentences=sentences)}"

    def test(self, rule: Rule, found: Sequence[Facts], website: str) -> str:
        """Return what is said in a test of a rule that finds some causes."""
        would_say, nothing = SENTENCES[self.language]["test"]
        if not found:
            return nothing
        sentences = " ".join(self.sentence(rule, "began", facts, website) for facts in found)
        return would_say.format(sentences=sentences)

    def _shown(self, name: str, value: object) -> str:
        if not isinstance(value, int):
            return str(value)
        locale = _LOCALES.get(self.language, self.language)
        if name in _TIMES:
            moment = datetime.fromtimestamp(value, UTC)
            return format_datetime(moment, "medium", tzinfo=self.zone, locale=locale)
        return format_decimal(value, locale=locale)
