"""The number of lines is bounded. Later lines say how many were left out."""

from __future__ import annotations

import asyncio
from typing import Any

from webhook.logs.structured import LINES_PER_S, Level, LimitedLog


def test_a_log_period_has_a_few_lines_and_the_number_of_omitted_lines():
    lines: list[tuple[Level, str, dict[str, Any]]] = []

    async def scenario() -> None:
        limited = LimitedLog(lambda *line: lines.append(line), "refused", period_s=0.05)
        for number in range(20):
            limited.write("warning", {"number": number})
        for _ in range(3):
            limited.write("debug", {})
        assert [fields["number"] for _, _, fields in lines] == list(range(LINES_PER_S))
        await asyncio.sleep(0.1)
        assert lines[LINES_PER_S:] == [("warning", "refused", {"left_out": 20 - LINES_PER_S})]
        limited.write("info", {"number": 0})
        await asyncio.sleep(0.1)
        assert len(lines) == LINES_PER_S + 2

    asyncio.run(scenario())
