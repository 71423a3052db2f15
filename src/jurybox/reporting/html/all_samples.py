"""All samples of a run inside its HTML report: compressed, and laid out by the report's script."""

import base64
import zlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, read_result
from jurybox.reporting.html.sample_panels import card
from jurybox.reporting.stored import reading
from jurybox.text_format import visible

LARGEST: Final = 20_000_000
"""The most bytes that samples may take, compressed."""
_LONGEST: Final = 20_000
_GZIP: Final = 16 + zlib.MAX_WBITS


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples as base64 of gzipped JSON; ``data`` is empty where they would be too large."""

    count: int
    data: str


def packed_samples(store: Store, run: RunRow, headline: str) -> PackedSamples:
    """Return all samples of a run, each with its headline score.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    packer = zlib.compressobj(9, wbits=_GZIP)
    pieces, size, count = list[bytes](), 0, 0
    with reading(run):
        for line in _lines(store, run, headline):
            pieces.append(packer.compress((b",\n" if count else b"[") + line))
            size += len(pieces[-1])
            count += 1
            if size > LARGEST:
                return PackedSamples(count=count, data="")
    pieces.append(packer.compress(b"]" if count else b"[]") + packer.flush())
    return PackedSamples(count=count, data=base64.b64encode(b"".join(pieces)).decode())


def _lines(store: Store, run: RunRow, headline: str) -> Iterator[bytes]:
    for row in store.samples(run.id):
        sample = card(row, headline, read_result(row.result).figures.get(headline))
        texts = [("task", sample.task)]
        texts += [(each.label, each.trouble or each.text) for each in sample.answers]
        texts += [(each.about, each.text) for each in sample.grounds]
        data: dict[str, Any] = {
            "number": sample.number,
            "id": visible(sample.id) + (f" (repeat {sample.repeat})" if sample.repeat else ""),
            "score": sample.value,
            "passed": sample.passed,
            "flags": sample.flags,
            "texts": [
                (visible(title), visible(text[:_LONGEST], kept="\n\t")) for title, text in texts
            ],
        }
        yield msgspec.json.encode(data)
