"""A progress bar for a stream: tqdm's, where tqdm is installed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _NoBar:
    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self) -> None:
        pass


_NO_BAR = _NoBar()


def progress_bar(progress: bool | int, name: str) -> Any:
    """What `_progress` asks for of the stream `name`: a bar of so many results or, by True, of an unknown number; by
    False one that shows nothing. ImportError without tqdm."""
    if progress is False:
        return _NO_BAR
    if not isinstance(progress, int) or progress < 0:
        raise TypeError(f"_progress is True, or the number of results that the stream will have, not {progress!r}")
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        raise ImportError("_progress shows a bar of tqdm, which is not installed: pip install tqdm") from None
    return tqdm(total=None if progress is True else progress, desc=name)
