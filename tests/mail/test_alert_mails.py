from medamad.domain.subscriptions import Every, Subscription
from medamad.mail.alert_mails import alert_letter

REPORT = Subscription(
    id="0123456789ab",
    secret="s" * 24,
    address="ada@example.com",
    websites=(1,),
    every=Every.WEEK,
    day=1,
    hour=8,
    timezone="UTC",
    language="en",
    created=1,
)
LINK = "https://stats.example.com/dashboard/websites/example.com"


def test_a_mail_says_what_the_alert_says_and_how_to_end_it() -> None:
    url = "https://stats.example.com"
    letter = alert_letter(REPORT, "Gone\nquiet.", LINK, url=url, number="notice")
    unsubscribe = f"{url}/mail/{'s' * 24}/unsubscribe"
    assert letter.subject == "Gone quiet."
    assert letter.text == f"Gone\nquiet.\n\n{LINK}\n\nUnsubscribe: {unsubscribe}\n"
    assert letter.number == "alert.notice"
    assert letter.headers == (
        ("List-Unsubscribe", f"<{unsubscribe}>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    )


def test_without_an_address_of_the_service_there_are_no_links() -> None:
    letter = alert_letter(REPORT, "a" * 300, "", url="", number="notice")
    assert (letter.subject, letter.text) == ("a" * 200, f"{'a' * 300}\n")
    assert letter.headers == ()
