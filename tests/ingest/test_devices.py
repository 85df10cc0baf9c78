import pytest

from medamad.ingest.user_agent import device_of


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ("Desktop", "Windows NT 10.0; Win64; x64"),
        ("Desktop", "Macintosh; Intel Mac OS X 10_15_7"),
        ("Desktop", "X11; CrOS x86_64 14541.0.0"),
        ("Desktop", "X11; FreeBSD amd64; rv:109.0"),
        ("Desktop", "Windows NT 6.1; Trident/7.0; Tablet PC 2.0; rv:11.0"),
        ("Mobile", "iPhone; CPU iPhone OS 17_1 like Mac OS X"),
        ("Mobile", "Linux; Android 10; K) Chrome/120.0.0.0 Mobile Safari/537.36 ("),
        ("Mobile", "Android 13; Mobile; rv:120.0"),
        ("Mobile", "Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) Mobile ("),
        ("Mobile", "Mobile; Nokia_8110_4G; rv:48.0"),
        ("Mobile", "Android; Opera Mini/36.2/191.249; U; en"),
        ("Tablet", "iPad; CPU OS 16_6 like Mac OS X) Mobile/15E148 ("),
        ("Tablet", "Linux; Android 12; SM-X906C"),
        ("Tablet", "Android 13; Tablet; rv:120.0"),
        ("Tablet", "Linux; Android 9; KFMAWI) Silk/108.4.6 like Chrome/108.0.5359.160 ("),
        ("TV", "SMART-TV; Linux; Tizen 5.0"),
        ("TV", "Web0S; Linux/SmartTV"),
        ("TV", "Linux; Android 9; BRAVIA 4K UR2"),
        ("TV", "Linux; Android 7.1.2; AFTMM Build/NS6265; wv) Mobile ("),
        ("TV", "X11; Linux armv7l) CrKey/1.56.500000 ("),
        ("Console", "PlayStation; PlayStation 5/5.50"),
        ("Console", "Nintendo Switch; WifiWebAuthApplet"),
        ("Console", "Windows NT 10.0; Win64; x64; Xbox; Xbox One"),
        ("Unknown", "Googlebot/2.1; iPhone; CPU iPhone OS 17_1 like Mac OS X"),
        ("Unknown", "Toaster"),
    ],
)
def test_the_kind_of_device_is_told(device: str, told: str) -> None:
    assert device_of(f"Mozilla/5.0 ({told})") == device
