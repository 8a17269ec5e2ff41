"""A program's own page for Prometheus, read on the loopback of its namespace: nothing of it is on the link."""

import math
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from edgebed.core.planned.program import OutputMeasure, Page
from edgebed.emulation.orders import Call

BYTES_MAX = 1 << 20
ANSWER_S = 5.0
"""Time that an answer may take."""


class PageReader:
    """Finds measures on the page of one life of a program."""

    def __init__(self, page: Page, measures: Iterable[OutputMeasure]) -> None:
        """`measures` that are no metrics are not looked for."""
        self.page = page
        self.asked = {each.name: each.metric for each in measures if each.metric}
        self._samples = {name: next(_samples(f"{metric} 1\n")) for name, metric in self.asked.items()}
        self._come: set[str] = set()

    def read(self) -> Call:
        """The values that are there now; why others are not, of those that never were."""
        where = f"http://127.0.0.1:{self.page.port}{self.page.path}"
        try:
            found = list(_samples(self._text()))
        except (OSError, HTTPException) as error:
            why = f"{where} does not answer: {str(error) or type(error).__name__}"
        except (ValueError, IndexError) as error:  # the library raises either
            why = f"{where} is no text for Prometheus: {error}"
        else:
            return self._sought(found, where)
        return Call(unread=dict.fromkeys(self.asked.keys() - self._come, why))

    def _text(self) -> str:
        connection = HTTPConnection("127.0.0.1", self.page.port, timeout=ANSWER_S)
        try:
            connection.request("GET", self.page.path, headers={"Accept": "text/plain", "Connection": "close"})
            answer = connection.getresponse()
            body = answer.read(BYTES_MAX + 1)
        finally:
            connection.close()
        if answer.status != HTTPStatus.OK:
            raise HTTPException(f"it says {answer.status} {answer.reason}")
        if len(body) > BYTES_MAX:
            raise ValueError(f"it has more than {BYTES_MAX:,} bytes")
        return body.decode()

    def _sought(self, found: list[Sample], where: str) -> Call:
        measured, unread = {}, {}
        for name, asked in self._samples.items():
            values = [
                float(each.value)
                for each in found
                if each.name == asked.name and asked.labels.items() <= each.labels.items()
            ]
            if len(values) == 1 and math.isfinite(values[0]):
                measured[name] = values[0]
            elif not values:
                unread[name] = f"{where} has no {self.asked[name]}"
            elif len(values) > 1:
                unread[name] = f"{where} has {len(values):,} of {self.asked[name]}: say which by their labels"
            else:
                unread[name] = f"{self.asked[name]} of {where} is {values[0]}, no finite number"
        self._come |= measured.keys()
        return Call(measured=measured, unread={name: why for name, why in unread.items() if name not in self._come})


def _samples(text: str) -> Iterator[Sample]:
    """Yield what a page has. ValueError where it is none."""
    for family in text_string_to_metric_families(text):
        yield from family.samples
