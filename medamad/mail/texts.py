"""What mails say, in the six languages. Terms are those of the dashboard's catalogues."""

from collections.abc import Mapping
from typing import Final

from attrs import frozen


@frozen(kw_only=True)
class Texts:
    """The texts of one language. Those with braces are formatted."""

    locale: str
    """CLDR's name of the language, for numbers, dates and countries."""
    subject: Mapping[str, str]
    """By the values of `spans.Every`, as is `than`."""
    than: Mapping[str, str]
    measures: Mapping[str, str]
    lists: Mapping[str, str]
    dimensions: Mapping[str, str]
    devices: Mapping[str, str]
    units: Mapping[str, str] = {}
    """The symbols of units of time, where CLDR's narrow form is a word."""
    direct: str
    unknown: str
    other: str
    none: str
    by_day: str
    before: str
    what_changed: str
    more: str
    fewer: str
    same: str
    by_chance: str
    chance_unknown: str
    part: str
    part_more: str
    part_fewer: str
    goals: str
    revenue: str
    annotations: str
    earlier_annotations: str
    share: str
    nothing: str
    incomplete: str
    not_left_out: str
    no_url: str
    open: str
    times: str
    late: str
    ended: str
    unsubscribe: str
    confirm: str
    confirm_subject: str
    confirm_text: str
    confirmed: str
    confirm_question: str
    unsubscribe_question: str
    gone: str
    later: str
    test_subject: str
    test: str


_EN: Final = Texts(
    locale="en",
    subject={
        "week": "Weekly report for {websites}: {span}",
        "month": "Monthly report for {websites}: {span}",
    },
    than={"week": "than in the week before", "month": "than in the month before"},
    measures={
        "visitors": "Visitors",
        "visits": "Visits",
        "pageviews": "Views",
        "conversions": "Conversions",
        "views_per_visit": "Views per visit",
        "visit_bounce_percentage": "Bounce rate",
        "visit_duration": "Time per visit",
    },
    lists={"pages": "Pages", "referrers": "Referrers", "countries": "Countries"},
    dimensions={
        "source": "referrer",
        "entry_page": "entry page",
        "country": "country",
        "device": "device",
        "campaign": "UTM campaign",
    },
    devices={
        "Desktop": "Desktop",
        "Mobile": "Mobile",
        "Tablet": "Tablet",
        "TV": "TV",
        "Console": "Console",
    },
    direct="Direct / none",
    unknown="Unknown",
    other="(other)",
    none="(none)",
    by_day="{measure} by day",
    before="before: {value}",
    what_changed="What changed",
    more="{measure}: {n} more {than} ({now} instead of {before}).",
    fewer="{measure}: {n} fewer {than} ({now} instead of {before}).",
    same="{measure}: {now}, as many as before.",
    by_chance="{measure}: about as before ({now} instead of {before}); chance explains the difference.",
    chance_unknown="Whether chance explains this cannot be said.",
    part="{name} ({dimension})",
    part_more="{parts}: {n} more ({now} instead of {before}).",
    part_fewer="{parts}: {n} fewer ({now} instead of {before}).",
    goals="Goals",
    revenue="Revenue",
    annotations="Annotations",
    earlier_annotations="Earlier ones, which the dashboard shows: {n}.",
    share="{measure}, most first",
    nothing="Nothing was counted in this period, nor in the one before.",
    incomplete="Some days are missing from some of these figures: only their sums are kept, or data is damaged.",
    not_left_out="Some exclusions do not apply to some of these days: only their sums are kept.",
    no_url="There are no links to the dashboard, because the server does not know its own address: set public_url in the section [server] of its configuration.",
    open="Open in the dashboard",
    times="Days begin at midnight in this time zone: {zone}.",
    late="This report was due on {when}. It is late because the server did not run then, or could not send it.",
    ended="You get this report because you have confirmed this address.",
    unsubscribe="Unsubscribe",
    confirm="Confirm",
    confirm_subject="Confirm reports for {websites}",
    confirm_text="Someone with access to the statistics of {websites} wants to send you their reports. If you want them, open this page and confirm. If not, do nothing: there will be no further mail.",
    confirmed="This address is confirmed. The next report will be sent to it.",
    confirm_question="Do you want to get the reports for {websites}?",
    unsubscribe_question="Do you want no more reports for {websites}?",
    gone="There are no reports under this address any more, or not yet. Nothing will be sent.",
    later="The server cannot store this at the moment. Please try again in a few minutes.",
    test_subject="Test mail from medamad",
    test="Mails from medamad arrive at this address.",
)
_DE: Final = Texts(
    locale="de",
    subject={
        "week": "Wochenbericht für {websites}: {span}",
        "month": "Monatsbericht für {websites}: {span}",
    },
    than={"week": "als in der Vorwoche", "month": "als im Vormonat"},
    measures={
        "visitors": "Besucher",
        "visits": "Besuche",
        "pageviews": "Seitenaufrufe",
        "conversions": "Conversions",
        "views_per_visit": "Aufrufe pro Besuch",
        "visit_bounce_percentage": "Absprungrate",
        "visit_duration": "Zeit pro Besuch",
    },
    lists={"pages": "Seiten", "referrers": "Referrer", "countries": "Länder"},
    dimensions={
        "source": "Referrer",
        "entry_page": "Einstiegsseite",
        "country": "Land",
        "device": "Gerät",
        "campaign": "UTM-Kampagne",
    },
    devices={
        "Desktop": "Desktop",
        "Mobile": "Mobil",
        "Tablet": "Tablet",
        "TV": "Fernseher",
        "Console": "Spielkonsole",
    },
    units={"hour": "h", "minute": "min", "second": "s"},
    direct="Direkt / ohne Referrer",
    unknown="Unbekannt",
    other="(andere)",
    none="(keine)",
    by_day="{measure} pro Tag",
    before="zuvor: {value}",
    what_changed="Was sich geändert hat",
    more="{measure}: {n} mehr {than} ({now} statt {before}).",
    fewer="{measure}: {n} weniger {than} ({now} statt {before}).",
    same="{measure}: {now}, so viele wie zuvor.",
    by_chance="{measure}: etwa wie zuvor ({now} statt {before}); der Unterschied lässt sich durch Zufall erklären.",
    chance_unknown="Ob sich das durch Zufall erklären lässt, ist nicht bekannt.",
    part="{name} ({dimension})",
    part_more="{parts}: {n} mehr ({now} statt {before}).",
    part_fewer="{parts}: {n} weniger ({now} statt {before}).",
    goals="Ziele",
    revenue="Umsatz",
    annotations="Anmerkungen",
    earlier_annotations="Frühere, die das Dashboard zeigt: {n}.",
    share="{measure}, absteigend",
    nothing="In diesem Zeitraum und im vorigen wurde nichts gezählt.",
    incomplete="In manchen dieser Zahlen fehlen einige Tage: Von ihnen sind nur noch Summen vorhanden, oder Daten sind beschädigt.",
    not_left_out="Für einige dieser Tage gelten manche Ausnahmen nicht: Von ihnen sind nur noch Summen vorhanden.",
    no_url="Links zum Dashboard fehlen, weil der Server seine eigene Adresse nicht kennt: Setzen Sie public_url im Abschnitt [server] seiner Konfiguration.",
    open="Im Dashboard öffnen",
    times="Tage beginnen um Mitternacht in dieser Zeitzone: {zone}.",
    late="Dieser Bericht war am {when} fällig. Er kommt später, weil der Server zu dieser Zeit nicht lief oder ihn nicht senden konnte.",
    ended="Sie erhalten diesen Bericht, weil Sie diese Adresse bestätigt haben.",
    unsubscribe="Abbestellen",
    confirm="Bestätigen",
    confirm_subject="Berichte für {websites} bestätigen",
    confirm_text="Jemand mit Zugang zu den Statistiken von {websites} möchte Ihnen deren Berichte senden. Wenn Sie sie wünschen, öffnen Sie diese Seite und bestätigen Sie. Wenn nicht, tun Sie nichts: Es kommt keine weitere E-Mail.",
    confirmed="Diese Adresse ist bestätigt. Der nächste Bericht wird an sie gesendet.",
    confirm_question="Möchten Sie die Berichte für {websites} erhalten?",
    unsubscribe_question="Möchten Sie keine Berichte für {websites} mehr?",
    gone="Unter dieser Adresse gibt es keine Berichte mehr oder noch keine. Es wird nichts gesendet.",
    later="Der Server kann das zurzeit nicht speichern. Bitte versuchen Sie es in einigen Minuten noch einmal.",
    test_subject="Testmail von medamad",
    test="E-Mails von medamad kommen unter dieser Adresse an.",
)
_FR: Final = Texts(
    locale="fr",
    subject={
        "week": "Rapport hebdomadaire pour {websites} : {span}",
        "month": "Rapport mensuel pour {websites} : {span}",
    },
    than={"week": "que la semaine précédente", "month": "que le mois précédent"},
    measures={
        "visitors": "Visiteurs",
        "visits": "Visites",
        "pageviews": "Pages vues",
        "conversions": "Conversions",
        "views_per_visit": "Pages vues par visite",
        "visit_bounce_percentage": "Taux de rebond",
        "visit_duration": "Temps par visite",
    },
    lists={"pages": "Pages", "referrers": "Sites référents", "countries": "Pays"},
    dimensions={
        "source": "site référent",
        "entry_page": "page d’entrée",
        "country": "pays",
        "device": "appareil",
        "campaign": "campagne UTM",
    },
    devices={
        "Desktop": "Ordinateur",
        "Mobile": "Mobile",
        "Tablet": "Tablette",
        "TV": "TV",
        "Console": "Console",
    },
    direct="Accès direct / aucun",
    unknown="Inconnu",
    other="(autres)",
    none="(aucun)",
    by_day="{measure} par jour",
    before="avant : {value}",
    what_changed="Ce qui a changé",
    more="{measure} : {n} de plus {than} ({now} au lieu de {before}).",
    fewer="{measure} : {n} de moins {than} ({now} au lieu de {before}).",
    same="{measure} : {now}, autant qu’avant.",
    by_chance="{measure} : à peu près comme avant ({now} au lieu de {before}) ; le hasard explique la différence.",
    chance_unknown="On ne peut pas dire si le hasard explique cette différence.",
    part="{name} ({dimension})",
    part_more="{parts} : {n} de plus ({now} au lieu de {before}).",
    part_fewer="{parts} : {n} de moins ({now} au lieu de {before}).",
    goals="Objectifs",
    revenue="Revenus",
    annotations="Annotations",
    earlier_annotations="Annotations antérieures, à voir dans le tableau de bord : {n}.",
    share="{measure}, par ordre décroissant",
    nothing="Rien n’a été compté pendant cette période, ni pendant la précédente.",
    incomplete="Certains jours manquent dans une partie de ces chiffres : seuls leurs totaux sont conservés, ou des données sont endommagées.",
    not_left_out="Certaines exclusions ne s’appliquent pas à certains de ces jours : seuls leurs totaux sont conservés.",
    no_url="Il n’y a pas de liens vers le tableau de bord, car le serveur ne connaît pas sa propre adresse : définissez public_url dans la section [server] de sa configuration.",
    open="Ouvrir dans le tableau de bord",
    times="Les jours commencent à minuit dans ce fuseau horaire : {zone}.",
    late="Ce rapport devait être envoyé le {when}. Il est en retard, car le serveur ne fonctionnait pas à ce moment-là ou n’a pas pu l’envoyer.",
    ended="Vous recevez ce rapport parce que vous avez confirmé cette adresse.",
    unsubscribe="Se désabonner",
    confirm="Confirmer",
    confirm_subject="Confirmer les rapports pour {websites}",
    confirm_text="Une personne qui a accès aux statistiques de {websites} souhaite vous envoyer leurs rapports. Si vous les voulez, ouvrez cette page et confirmez. Sinon, ne faites rien : il n’y aura pas d’autre e-mail.",
    confirmed="Cette adresse est confirmée. Le prochain rapport lui sera envoyé.",
    confirm_question="Voulez-vous recevoir les rapports pour {websites} ?",
    unsubscribe_question="Ne voulez-vous plus de rapports pour {websites} ?",
    gone="Il n’y a plus de rapports à cette adresse, ou pas encore. Rien ne sera envoyé.",
    later="Le serveur ne peut pas enregistrer cela pour le moment. Veuillez réessayer dans quelques minutes.",
    test_subject="E-mail de test de medamad",
    test="Les e-mails de medamad arrivent à cette adresse.",
)
_ES: Final = Texts(
    locale="es",
    subject={
        "week": "Informe semanal de {websites}: {span}",
        "month": "Informe mensual de {websites}: {span}",
    },
    than={"week": "que la semana anterior", "month": "que el mes anterior"},
    measures={
        "visitors": "Visitantes",
        "visits": "Visitas",
        "pageviews": "Vistas",
        "conversions": "Conversiones",
        "views_per_visit": "Vistas por visita",
        "visit_bounce_percentage": "Tasa de rebote",
        "visit_duration": "Tiempo por visita",
    },
    lists={"pages": "Páginas", "referrers": "Referencias", "countries": "Países"},
    dimensions={
        "source": "referencia",
        "entry_page": "página de entrada",
        "country": "país",
        "device": "dispositivo",
        "campaign": "campaña UTM",
    },
    devices={
        "Desktop": "Escritorio",
        "Mobile": "Móvil",
        "Tablet": "Tableta",
        "TV": "Televisor",
        "Console": "Consola",
    },
    direct="Directo / ninguna",
    unknown="Desconocido",
    other="(otros)",
    none="(ninguno)",
    by_day="{measure} por día",
    before="antes: {value}",
    what_changed="Qué ha cambiado",
    more="{measure}: {n} más {than} ({now} en lugar de {before}).",
    fewer="{measure}: {n} menos {than} ({now} en lugar de {before}).",
    same="{measure}: {now}, igual que antes.",
    by_chance="{measure}: más o menos como antes ({now} en lugar de {before}); el azar explica la diferencia.",
    chance_unknown="No se puede saber si el azar explica esta diferencia.",
    part="{name} ({dimension})",
    part_more="{parts}: {n} más ({now} en lugar de {before}).",
    part_fewer="{parts}: {n} menos ({now} en lugar de {before}).",
    goals="Objetivos",
    revenue="Ingresos",
    annotations="Anotaciones",
    earlier_annotations="Anotaciones anteriores, que muestra el panel: {n}.",
    share="{measure}, de mayor a menor",
    nothing="No se ha contado nada en este periodo ni en el anterior.",
    incomplete="En algunas de estas cifras faltan días: solo se conservan sus totales, o hay datos dañados.",
    not_left_out="Algunas exclusiones no se aplican a algunos de estos días: solo se conservan sus totales.",
    no_url="No hay enlaces al panel porque el servidor no conoce su propia dirección: defina public_url en la sección [server] de su configuración.",
    open="Abrir en el panel",
    times="Los días empiezan a medianoche en esta zona horaria: {zone}.",
    late="Este informe debía enviarse el {when}. Llega tarde porque el servidor no funcionaba en ese momento o no pudo enviarlo.",
    ended="Recibe este informe porque ha confirmado esta dirección.",
    unsubscribe="Cancelar la suscripción",
    confirm="Confirmar",
    confirm_subject="Confirmar los informes de {websites}",
    confirm_text="Alguien con acceso a las estadísticas de {websites} quiere enviarle sus informes. Si los desea, abra esta página y confirme. Si no, no haga nada: no habrá más correos.",
    confirmed="Esta dirección está confirmada. El próximo informe se enviará a ella.",
    confirm_question="¿Quiere recibir los informes de {websites}?",
    unsubscribe_question="¿No quiere más informes de {websites}?",
    gone="Ya no hay informes en esta dirección, o todavía no. No se enviará nada.",
    later="El servidor no puede guardar esto en este momento. Inténtelo de nuevo en unos minutos.",
    test_subject="Correo de prueba de medamad",
    test="Los correos de medamad llegan a esta dirección.",
)
_JA: Final = Texts(
    locale="ja",
    subject={
        "week": "{websites}の週次レポート：{span}",
        "month": "{websites}の月次レポート：{span}",
    },
    than={"week": "前週より", "month": "前月より"},
    measures={
        "visitors": "訪問者数",
        "visits": "訪問数",
        "pageviews": "ページビュー数",
        "conversions": "コンバージョン",
        "views_per_visit": "訪問あたりのページビュー",
        "visit_bounce_percentage": "直帰率",
        "visit_duration": "訪問あたりの時間",
    },
    lists={"pages": "ページ", "referrers": "リファラー", "countries": "国・地域"},
    dimensions={
        "source": "リファラー",
        "entry_page": "入口ページ",
        "country": "国・地域",
        "device": "デバイス",
        "campaign": "UTMキャンペーン",
    },
    devices={
        "Desktop": "パソコン",
        "Mobile": "モバイル",
        "Tablet": "タブレット",
        "TV": "テレビ",
        "Console": "ゲーム機",
    },
    direct="直接アクセス／なし",
    unknown="不明",
    other="（その他）",
    none="（なし）",
    by_day="日別の{measure}",
    before="前回：{value}",
    what_changed="変化した点",
    more="{measure}：{than}{n}増加（{before}→{now}）。",
    fewer="{measure}：{than}{n}減少（{before}→{now}）。",
    same="{measure}：{now}で、前回と同じです。",
    by_chance="{measure}：前回とほぼ同じです（{before}→{now}）。差は偶然で説明できます。",
    chance_unknown="この差が偶然によるものかどうかは判断できません。",
    part="{name}（{dimension}）",
    part_more="{parts}：{n}増加（{before}→{now}）。",
    part_fewer="{parts}：{n}減少（{before}→{now}）。",
    goals="目標",
    revenue="収益",
    annotations="注釈",
    earlier_annotations="これより前の注釈（ダッシュボードに表示）：{n} 件。",
    share="{measure}の多い順",
    nothing="この期間にも前の期間にも、記録はありません。",
    incomplete="一部の数値には、含まれていない日があります。合計だけが残っているか、データが破損しています。",
    not_left_out="一部の日には、一部の除外が適用されません。その日は合計だけが残っています。",
    no_url="サーバーが自身のアドレスを知らないため、ダッシュボードへのリンクがありません。設定の[server]セクションでpublic_urlを指定してください。",
    open="ダッシュボードで開く",
    times="1日はこのタイムゾーンの午前0時に始まります：{zone}",
    late="このレポートの送信予定は{when}でした。その時にサーバーが動作していなかったか、送信できなかったため、遅れています。",
    ended="このアドレスが確認されたため、このレポートが届いています。",
    unsubscribe="配信を停止",
    confirm="確認する",
    confirm_subject="{websites}のレポートの確認",
    confirm_text="{websites}の統計にアクセスできる人が、レポートの送信を希望しています。受け取る場合は、このページを開いて確認してください。受け取らない場合は何もする必要はありません。これ以上メールは届きません。",
    confirmed="このアドレスが確認されました。次のレポートから送信されます。",
    confirm_question="{websites}のレポートを受け取りますか？",
    unsubscribe_question="{websites}のレポートの配信を停止しますか？",
    gone="このアドレスのレポートはすでにないか、まだありません。何も送信されません。",
    later="サーバーは現在これを保存できません。数分後にもう一度お試しください。",
    test_subject="medamadからのテストメール",
    test="medamadからのメールは、このアドレスに届きます。",
)
_ZH: Final = Texts(
    locale="zh",
    subject={
        "week": "{websites} 周报：{span}",
        "month": "{websites} 月报：{span}",
    },
    than={"week": "比上一周", "month": "比上个月"},
    measures={
        "visitors": "访客数",
        "visits": "访问次数",
        "pageviews": "浏览量",
        "conversions": "转化次数",
        "views_per_visit": "每次访问浏览量",
        "visit_bounce_percentage": "跳出率",
        "visit_duration": "每次访问时长",
    },
    lists={"pages": "页面", "referrers": "引荐来源", "countries": "国家/地区"},
    dimensions={
        "source": "引荐来源",
        "entry_page": "入口页面",
        "country": "国家/地区",
        "device": "设备",
        "campaign": "UTM 广告系列",
    },
    devices={
        "Desktop": "桌面设备",
        "Mobile": "移动设备",
        "Tablet": "平板电脑",
        "TV": "电视",
        "Console": "游戏机",
    },
    direct="直接访问/无",
    unknown="未知",
    other="（其他）",
    none="（无）",
    by_day="每天的{measure}",
    before="之前：{value}",
    what_changed="有哪些变化",
    more="{measure}：{than}增加 {n}（{before} → {now}）。",
    fewer="{measure}：{than}减少 {n}（{before} → {now}）。",
    same="{measure}：{now}，与之前相同。",
    by_chance="{measure}：与之前基本持平（{before} → {now}），差异可以用偶然因素解释。",
    chance_unknown="无法判断这一差异是否由偶然因素造成。",
    part="{name}（{dimension}）",
    part_more="{parts}：增加 {n}（{before} → {now}）。",
    part_fewer="{parts}：减少 {n}（{before} → {now}）。",
    goals="目标",
    revenue="收入",
    annotations="注释",
    earlier_annotations="更早的注释（可在仪表板中查看）：{n} 条。",
    share="按{measure}从多到少",
    nothing="这段时间和之前一段时间都没有任何记录。",
    incomplete="部分数字缺少某些日期：只保留了这些日期的总数，或数据已损坏。",
    not_left_out="某些排除规则不适用于部分日期：只保留了这些日期的总数。",
    no_url="没有指向仪表板的链接，因为服务器不知道自己的地址：请在其配置的 [server] 部分设置 public_url。",
    open="在仪表板中打开",
    times="每天从该时区的午夜开始：{zone}。",
    late="此报告原定于 {when} 发送。由于当时服务器未运行或无法发送，因此延迟。",
    ended="您收到此报告，是因为您确认了此地址。",
    unsubscribe="退订",
    confirm="确认",
    confirm_subject="确认接收 {websites} 的报告",
    confirm_text="可访问 {websites} 统计数据的人希望向您发送其报告。如果您愿意接收，请打开此页面并确认。如果不愿意，无需任何操作：不会再有其他邮件。",
    confirmed="此地址已确认。下一份报告将发送到此地址。",
    confirm_question="您要接收 {websites} 的报告吗？",
    unsubscribe_question="您不想再接收 {websites} 的报告吗？",
    gone="此地址下已没有报告，或尚无报告。不会发送任何内容。",
    later="服务器目前无法保存此更改。请几分钟后再试。",
    test_subject="来自 medamad 的测试邮件",
    test="medamad 的邮件可以送达此地址。",
)

TEXTS: Final[Mapping[str, Texts]] = {
    texts.locale: texts for texts in (_EN, _DE, _FR, _ES, _JA, _ZH)
}
"""The texts by the account's language (`domain.accounts.LANGUAGES`)."""
