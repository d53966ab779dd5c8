"""Make ``locbook/datasets/data/oliver_twist_counts.npz`` from the text of *Oliver Twist*.

    LOCBOOK_DATA=folder/of/oliver_twist.txt python -m tools.make_oliver_counts [output.npz]

Figures only, no text: the 300 commonest words, their counts, and their pair counts at the distances 1 to 5
(those at -1 to -5 are the transposes). The output is the same byte for byte on every run (with the same zlib
and text).
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from locbook.datasets import count_word_pairs, load_oliver_twist, oliver_twist_chapters, oliver_twist_tokens
from tools.make_fashion_mini import npz_bytes

OUTPUT = Path(__file__).resolve().parents[1] / "locbook" / "datasets" / "data" / "oliver_twist_counts.npz"
N_WORDS = 300
MAX_OFFSET = 5


def make() -> bytes:
    """Make the contents of the file."""
    text = load_oliver_twist()
    documents = [oliver_twist_tokens(chapter.text) for chapter in oliver_twist_chapters(text)]
    table = count_word_pairs(documents, N_WORDS, MAX_OFFSET)
    after = table.pairs[MAX_OFFSET + 1 :]
    if after.max() > np.iinfo(np.uint16).max:
        raise OverflowError(f"pair counts up to {after.max()} do not fit into uint16")
    return npz_bytes({
        "words": np.frombuffer(" ".join(table.words).encode("ascii"), dtype=np.uint8), "counts":
        table.counts.astype(np.uint16), "pairs_after": after.astype(np.uint16), "n_pairs_after":
        table.n_pairs[MAX_OFFSET + 1 :].astype(np.uint32), "n_tokens": np.array(table.n_tokens,
        dtype=np.uint32), "text_sha256":
        np.frombuffer(hashlib.sha256(text.encode()).hexdigest().encode("ascii"), dtype=np.uint8),
    })  # fmt: skip


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    target.write_bytes(make())
    print(f"{target}: {target.stat().st_size:,} bytes")
