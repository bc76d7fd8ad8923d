"""Raw outputs on disk: arrays as .npz, and beside them how they were made as .json.

The .json is written last and makes a run finished; arrays without it, of a run that was
killed, count for nothing. Both files appear under their names only when they are whole.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.paper.results import Result


@dataclass(frozen=True)
class RunKey:
    """Which run: one data set, prepared by one recipe, one method, one seed."""

    dataset: str
    recipe: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.recipe}:{self.method}, seed {self.seed}"


class Store:
    """The folder with raw outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: RunKey, suffix: str) -> Path:
        """Return where a file of a run lies."""
        dataset = key.dataset.replace("/", "__")
        name = f"seed_{key.seed:02d}{suffix}"
        return self.folder / "raw" / key.recipe / dataset / key.method / name

    def read_record(self, key: RunKey) -> dict | None:
        """Return how a run was made; None if it is not finished."""
        path = self.path(key, ".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def is_finished(self, key: RunKey, identity: dict) -> bool:
        """Return whether a run is there that was made in this way."""
        record = self.read_record(key)
        if record is None or record["status"] == "failed":
            return False
        return record["identity"] == identity

    def read(self, key: RunKey) -> Result | None:
        """Return the output of a run; None if there is none."""
        record = self.read_record(key)
        if record is None or record["status"] != "done":
            return None
        with np.load(self.path(key, ".npz")) as arrays:
            labels, scores = arrays["labels"], arrays.get("scores")
        return Result(labels, scores, record["has_clusters"], record["seconds"])

    def write(self, key: RunKey, result: Result, record: dict) -> None:
        """Store a run that came to its end."""
        arrays = {"labels": result.labels}
        if result.scores is not None:
            arrays["scores"] = result.scores
        self.path(key, ".json").unlink(missing_ok=True)
        _write_whole(
            self.path(key, ".npz"), lambda file: np.savez_compressed(file, **arrays)
        )
        self._write_record(
            key,
            {
                **record,
                "status": "done",
                "has_clusters": result.has_clusters,
                "seconds": result.seconds,
            },
        )

    def write_reason(self, key: RunKey, status: str, reason: str, record: dict) -> None:
        """Store why a run has no output: it was "skipped", or it "failed"."""
        self.path(key, ".npz").unlink(missing_ok=True)
        self._write_record(key, {**record, "status": status, "reason": reason})

    def _write_record(self, key: RunKey, record: dict) -> None:
        text = json.dumps(record, indent=1) + "\n"
        _write_whole(
            self.path(key, ".json"), lambda file: file.write(text.encode("utf-8"))
        )


def _write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write beside the file first: nobody ever sees half of it under its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            write(file)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
