"""Texts that are written in another encoding than UTF-8, and bytes that are no text at all."""

import codecs
import re
from collections.abc import Sequence
from typing import Final, Literal

Encoding = Literal[
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-5",
    "iso-8859-7",
    "iso-8859-9",
    "iso-8859-15",
    "latin-1",
    "cp437",
    "cp850",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
    "koi8-r",
    "shift_jis",
    "euc_jp",
    "euc_kr",
    "big5",
    "gb18030",
]
"""Encodings that can be read on from any character: no byte before it changes what it is."""
UTF_8: Final = "utf-8"
ENCODING: Final = (
    "How the text is encoded; a mark at its beginning (BOM) says the order of bytes of utf-16 and "
    "utf-32, which without one are little-endian."
)

_WIDE: Final = ("utf-16", "utf-32")
_MARKS: Final = {
    "utf-16": {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"},
    "utf-32": {b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be"},
}
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
_BYTES: Final = 0xDC00
_BOM: Final = "\ufeff"
_ERRORS: Final = "espha.kept"


def is_wide(encoding: str) -> bool:
    """Tell whether a newline of an encoding is more than the byte 10."""
    return encoding.startswith(_WIDE)


def mark_size(encoding: str) -> int:
    """Return how many bytes at the beginning of a text say its order of bytes."""
    return max(map(len, _MARKS.get(encoding, {b"": ""})))


def of_beginning(encoding: str, beginning: bytes) -> str:
    """Return the encoding of a text, with its order of bytes.

    Args:
        encoding: as it is configured.
        beginning: the first bytes of the text, four where there are so many.
    """
    marks = _MARKS.get(encoding)
    if marks is None:
        return encoding
    found = (order for mark, order in marks.items() if beginning.startswith(mark))
    return next(found, f"{encoding}-le")


def decoder(encoding: str) -> codecs.IncrementalDecoder:
    """Return what decodes a text piece by piece; what is none becomes halves of surrogate pairs."""
    return codecs.getincrementaldecoder(encoding)(_ERRORS)


def pending(decoding: codecs.IncrementalDecoder) -> int:
    """Return how many bytes wait in a decoder for the rest of their character."""
    return len(decoding.getstate()[0])


class Transcoder:
    """Makes UTF-8 of a text of another encoding, piece by piece."""

    def __init__(self, encoding: str) -> None:
        """Begin with a text."""
        self._encoding, self._head = encoding, b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> bytes:
        """Return the next piece in UTF-8; what was no text is no text there, too."""
        if self._decoder is None:
            self._head += data
            if len(self._head) < mark_size(self._encoding):
                return b""
            self._decoder = decoder(of_beginning(self._encoding, self._head))
            data, self._head = self._head, b""
        return to_utf8(self._decoder.decode(data))

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their character."""
        return len(self._head) if self._decoder is None else pending(self._decoder)


def to_utf8(text: str) -> bytes:
    """Return a decoded text in UTF-8; what was no text is no text there, too."""
    return text.encode(UTF_8, "surrogateescape")


def payload_to_utf8(payload: bytes, encoding: str) -> bytes:
    """Return a text of another encoding in UTF-8; what was no text is no text there, too."""
    text = decoder(of_beginning(encoding, payload[:4])).decode(payload, final=True)
    return to_utf8(text.removeprefix(_BOM))


def wrong_cell(cells: Sequence[str], encoding: str = UTF_8) -> str:
    """Return what is wrong with a row of which a cell is no text, as a sentence; empty: nothing.

    Args:
        cells: as `espha.records.rows.decode` gives them.
        encoding: of the source.
    """
    for number, cell in enumerate(cells, start=1):
        found = _NO_TEXT.search(cell)
        if found and encoding == UTF_8:
            return f"not text in UTF-8 (byte 0x{ord(found[0]) & 0xFF:02X} in column {number})"
        if found:
            return f"not text in {encoding} (column {number})"
    return ""


def wrong_bytes(line: bytes, encoding: str = UTF_8) -> str:
    """Return what is wrong with a line that holds no text, as a sentence."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if encoding == UTF_8:
            return f"not text in UTF-8 (byte 0x{line[error.start]:02X}, at place {error.start})"
        return f"not text in {encoding}"
    return "a text has half of a surrogate pair"


def _kept(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    # No byte of ASCII: it would count as text. 0xFF is in no text of UTF-8.
    wrong = error.object[error.start : error.end]
    return "".join(chr(_BYTES + (byte if byte > 0x7F else 0xFF)) for byte in wrong), error.end


codecs.register_error(_ERRORS, _kept)
