"""What docs/chats.md says of each platform is what its row says."""

import re
from pathlib import Path

import pytest

from chalicelib.domain.chat.platform import PLATFORMS
from chalicelib.domain.chat.waits import NO_HINT_S
from chalicelib.domain.endpoint import Transport
from tests.unit.domain.chats import CHATS

PAGE = (Path(__file__).parents[2] / "docs" / "chats.md").read_text(encoding="utf-8")
_ROW = re.compile(r"\| `(\w+)` \| `\w+://[^|]+\| [^|]+ \| ([0-9,]+) \| ([0-9]+), ([0-9]+)[:. ]")


@pytest.mark.parametrize("transport", CHATS)
def test_limit_and_pace_are_those_of_the_table(transport: Transport) -> None:
    told = {
        name: tuple(int(each.replace(",", "")) for each in numbers) for name, *numbers in _ROW.findall(PAGE)
    }
    row = PLATFORMS[transport]
    assert told[transport.value] == (row.text_max, row.limits.rate_per_second, row.limits.burst)


def test_a_ban_pauses_for_as_long_as_the_page_says() -> None:
    assert NO_HINT_S == 5 * 60
    assert "holds it for five minutes" in PAGE
