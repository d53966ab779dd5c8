"""Tests of ``locbook.datasets``. No network: downloads are served from this machine's loopback or faked."""

import gzip
import hashlib
import http.server
import io
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from locbook import datasets
from locbook.datasets import _sources, fashion_mnist, oliver_twist
from tools import make_fashion_mini, make_oliver_counts

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "locbook" / "datasets" / "data"
needs_fashion = pytest.mark.skipif(
    not datasets.is_available("fashion_mnist"),
    reason="the full Fashion-MNIST is not here (Debian package dataset-fashion-mnist, or $LOCBOOK_DATA)",
)
needs_oliver = pytest.mark.skipif(
    not datasets.is_available("oliver_twist"),
    reason="the text of Oliver Twist is not here ($LOCBOOK_DATA/oliver_twist.txt)",
)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data folder, an empty cache, nothing on the system; gives the cache folder."""
    monkeypatch.delenv("LOCBOOK_DATA", raising=False)
    monkeypatch.setenv("LOCBOOK_CACHE", str(tmp_path / "cache"))
    empty = {name: (folder, files, ()) for name, (folder, files, _) in _sources.FILES.items()}
    monkeypatch.setattr(_sources, "FILES", empty)
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch):
    """Any call of ``fetch`` fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a download was tried")

    for module in (fashion_mnist, oliver_twist):
        monkeypatch.setattr(module, "fetch", refuse)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server on the loopback: gives its address, its folder and the list of paths asked for."""
    pytest.importorskip("pooch", reason="pooch (extra 'data') is not installed")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, asked = tmp_path / "served", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{site.server_port}/", folder, asked
        site.shutdown()
        thread.join()


# The package


def test_every_public_name_is_there_and_documented():
    for name in datasets.__all__:
        assert getattr(datasets, name).__doc__.strip(), name
    for name in datasets.__all__:
        if name.startswith(("make_", "load_", "mask_", "count_", "oliver_", "is_", "circle_")):
            text = getattr(datasets, name).__doc__
            assert "Examples\n" in text, name
            assert "Returns\n" in text, name
            assert getattr(datasets, name).__annotations__["return"], name


def test_import_loads_no_optional_package():
    """The parent package is a stub: what the models import (scikit-learn takes pandas along) is theirs."""
    code = (
        "import sys, types; parent = types.ModuleType('locbook'); parent.__path__ = ['locbook']; "
        "sys.modules['locbook'] = parent; import locbook.datasets as d; "
        "d.load_fashion_mnist(); d.load_oliver_twist_counts(); "
        "print([m for m in ('pooch', 'requests', 'tqdm', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_licence_stands_beside_the_images():
    text = (DATA / "LICENSE-fashion-mnist.txt").read_text(encoding="utf-8")
    assert "Copyright © 2017 Zalando SE" in text
    assert "MIT" in text
    sources = (ROOT / "locbook" / "datasets" / "README.md").read_text(encoding="utf-8")
    assert all(
        name in sources for name in ("LICENSE-fashion-mnist.txt", *(p.name for p in DATA.glob("*.npz")))
    )


def test_embedded_files_are_small():
    assert (DATA / "fashion_mini.npz").stat().st_size < 1.2e6
    assert (DATA / "oliver_twist_counts.npz").stat().st_size < 0.15e6


# Where data are looked for


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCBOOK_CACHE", str(tmp_path))
    assert datasets.cache_folder() == tmp_path
    monkeypatch.delenv("LOCBOOK_CACHE")
    pooch = pytest.importorskip("pooch")
    assert datasets.cache_folder() == Path(pooch.os_cache("locbook")).expanduser()
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert datasets.cache_folder() == tmp_path / "xdg" / "locbook" == Path(pooch.os_cache("locbook"))


def test_order_of_places(monkeypatch, tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("LOCBOOK_DATA", str(data))
    monkeypatch.setenv("LOCBOOK_CACHE", str(cache))
    system = tmp_path / "system"
    monkeypatch.setitem(_sources.FILES, "fashion_mnist", ("fashion-mnist", ("a",), (str(system),)))
    in_order = [data / "fashion-mnist" / "a.gz", data / "fashion-mnist" / "a", data / "a.gz", data / "a"]
    in_order += [cache / "fashion-mnist" / "a.gz", system / "a.gz"]
    assert _sources.find("fashion_mnist", "a") is None
    assert not datasets.is_available("fashion_mnist")
    for path in reversed(in_order):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert _sources.find("fashion_mnist", "a") == path
        assert datasets.is_available("fashion_mnist")
    with pytest.raises(ValueError, match=r"name must be one of 'fashion_mnist', 'oliver_twist', got 'mnist'"):
        datasets.is_available("mnist")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (
            lambda **kw: datasets.load_fashion_mnist("full", **kw),
            ("train-images-idx3-ubyte.gz", "dataset-fashion-mnist", 'load_fashion_mnist("mini")'),
        ),
        (datasets.load_oliver_twist, ("oliver_twist.txt", "gutenberg.org", "load_oliver_twist_counts()")),
    ],
)
def test_missing_data_say_how_to_get_them(load, words, nowhere, monkeypatch):
    expected = (
        *words,
        str(nowhere),
        "$LOCBOOK_DATA (not set)",
        "no such folder",
        'pip install "locbook[data]"',
    )
    with pytest.raises(FileNotFoundError) as error:
        load(download_if_missing=False)
    assert all(word in str(error.value) for word in expected), error.value
    monkeypatch.setitem(sys.modules, "pooch", None)  # as if it were not installed
    with pytest.raises(ImportError, match="needs pooch, which is not installed") as error:
        load()
    assert all(word in str(error.value) for word in expected)
    monkeypatch.setenv("LOCBOOK_DATA", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match=r"/no/such/folder \(\$LOCBOOK_DATA, no such folder\)"):
        load(download_if_missing=False)


# Downloads


def test_fetch_checks_and_leaves_nothing_half_done(server, nowhere, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    url, folder, asked = server
    (folder / "file").write_bytes(b"right")
    digest = hashlib.sha256(b"right").hexdigest()
    path = _sources.fetch(url + "file", "kept", nowhere, digest, "how to get it")
    assert path == nowhere / "kept"
    assert path.read_bytes() == b"right"

    (folder / "file").write_bytes(b"wrong")
    asked.clear()
    with pytest.raises(FileNotFoundError, match=r"how to get it\nThe download from .* failed") as error:
        _sources.fetch(url + "file", "damaged", nowhere, digest, "how to get it")
    assert isinstance(error.value.__cause__, ValueError)
    assert len(asked) == 1 + _sources.RETRIES
    with pytest.raises(FileNotFoundError, match="404"):
        _sources.fetch(url + "absent", "absent", nowhere, digest, "how to get it")
    assert sorted(p.name for p in nowhere.iterdir()) == ["kept"]


def test_fetch_without_a_server(nowhere, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(FileNotFoundError, match=r"The download from http://127\.0\.0\.1:9/x failed"):
        _sources.fetch("http://127.0.0.1:9/x", "x", nowhere, None, "how to get it")
    assert not list(nowhere.glob("*"))


def test_fetch_has_a_timeout(nowhere, monkeypatch):
    pooch = pytest.importorskip("pooch")
    monkeypatch.setattr(_sources, "_show_progress", lambda: False)
    made = []

    class Downloader(pooch.HTTPDownloader):
        def __init__(self, **kwargs):
            made.append(kwargs)
            super().__init__(**kwargs)

        def __call__(self, url, output_file, store):  # noqa: ARG002 - pooch calls it so
            Path(output_file).write_bytes(b"x")

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    _sources.fetch("http://127.0.0.1:9/x", "x", nowhere, None, "")
    assert made == [{"timeout": _sources.TIMEOUT, "progressbar": False}]


def test_progress_bar_only_where_a_person_looks(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert _sources._show_progress() is False
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert _sources._show_progress() is True
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert _sources._show_progress() is False


# Fashion-MNIST


def idx(array):
    """The idx file of a uint8 array."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


@pytest.fixture
def small_set(monkeypatch):
    """Makes the loader believe in a full set of 6 + 3 images; gives the packed files by name."""
    rng = np.random.default_rng(0)
    packed, table = {}, {}
    for stem, n in (("train", 6), ("t10k", 3)):
        for name, array in (
            (f"{stem}-images-idx3-ubyte", rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)),
            (f"{stem}-labels-idx1-ubyte", rng.integers(0, 10, n, dtype=np.uint8)),
        ):
            raw = idx(array)
            packed[name] = gzip.compress(raw)
            digests = (hashlib.sha256(data).hexdigest() for data in (packed[name], raw))
            table[name] = fashion_mnist._File(*digests, array.shape)
    monkeypatch.setattr(fashion_mnist, "_FILES", table)
    return packed


def test_mini_is_balanced(no_network):
    train, test = (datasets.load_fashion_mnist(split=split) for split in ("train", "test"))
    for data, n in ((train, 2000), (test, 500)):
        assert data.images.shape == (n, 28, 28)
        assert data.images.dtype == np.uint8
        assert data.labels.shape == (n,)
        assert data.labels.dtype == np.int64
        assert (np.sort(data.labels.reshape(-1, 10), axis=1) == np.arange(10)).all()
        assert data.images.flags.writeable
        assert data.labels.flags.writeable
        assert len(np.unique(data.images.reshape(n, -1), axis=0)) == n
        assert len(data.names) == 10
        assert "MIT" in data.description
        assert "Zalando" in data.description
    both = datasets.load_fashion_mnist(split="both")
    assert (both.images == np.concatenate([train.images, test.images])).all()
    assert (both.labels == np.concatenate([train.labels, test.labels])).all()
    train.images[:] = 0
    assert datasets.load_fashion_mnist().images.any()


def test_mini_is_the_clothing_it_says():
    """Nearest class mean: a wrong pairing of images and labels would be right one time in ten."""
    x, y = (
        f(datasets.load_fashion_mnist())
        for f in (lambda d: d.images.reshape(2000, -1) / 255, lambda d: d.labels)
    )
    test = datasets.load_fashion_mnist(split="test")
    means = np.array([x[y == c].mean(axis=0) for c in range(10)])
    gaps = ((test.images.reshape(500, 1, -1) / 255 - means) ** 2).sum(axis=2)
    assert (gaps.argmin(axis=1) == test.labels).mean() > 0.6


@needs_fashion
def test_full_set():
    train, test = (
        datasets.load_fashion_mnist("full", split=split, download_if_missing=False)
        for split in ("train", "test")
    )
    assert train.images.shape == (60000, 28, 28)
    assert test.images.shape == (10000, 28, 28)
    assert (np.bincount(train.labels) == 6000).all()
    assert (np.bincount(test.labels) == 1000).all()
    with np.load(DATA / "fashion_mini.npz") as mini:
        for split, full in (("train", train), ("test", test)):
            assert (full.images[mini[f"{split}_index"]] == mini[f"{split}_images"]).all()
            assert (full.labels[mini[f"{split}_index"]] == mini[f"{split}_labels"]).all()


@needs_fashion
def test_mini_is_made_by_its_tool(tmp_path):
    assert_remade(make_fashion_mini.make(), DATA / "fashion_mini.npz", tmp_path)


def assert_remade(made, path, tmp_path):
    """Equal byte for byte; where another zlib packs differently, equal arrays in the same order."""
    if made == path.read_bytes():
        return
    (tmp_path / "made.npz").write_bytes(made)
    with np.load(tmp_path / "made.npz") as new, np.load(path) as old:
        assert new.files == old.files
        for name in new.files:
            assert new[name].dtype == old[name].dtype, name
            assert np.array_equal(new[name], old[name]), name
    assert repack(made) == repack(path.read_bytes()), (
        "same arrays, other bytes: not zlib, but the writer has changed"
    )


def repack(data):
    """What a zip says of its members, packed sizes left out."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(i.filename, i.date_time, i.create_system, i.CRC, i.file_size) for i in archive.infolist()]


def test_full_set_is_downloaded_once_and_checked(server, nowhere, small_set, monkeypatch):
    url, folder, asked = server
    for name, data in small_set.items():
        (folder / f"{name}.gz").write_bytes(data)
    monkeypatch.setattr(fashion_mnist, "BASE_URL", url)
    both = datasets.load_fashion_mnist("full", split="both")
    assert both.images.shape == (9, 28, 28)
    assert both.labels.dtype == np.int64
    assert len(asked) == 4
    assert datasets.is_available("fashion_mnist")
    assert sorted(p.name for p in (nowhere / "fashion-mnist").iterdir()) == sorted(
        f"{n}.gz" for n in small_set
    )
    again = datasets.load_fashion_mnist("full", split="both", download_if_missing=False)
    assert len(asked) == 4
    assert (again.images == both.images).all()


def test_damaged_files_are_not_used(nowhere, small_set, no_network, monkeypatch, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("LOCBOOK_DATA", str(data))
    for name, packed in small_set.items():
        (data / f"{name}.gz").write_bytes(packed)
    assert len(datasets.load_fashion_mnist("full", split="test").labels) == 3
    path = data / "t10k-labels-idx1-ubyte.gz"
    good = path.read_bytes()
    other = gzip.compress(idx(np.array([1, 2, 3], dtype=np.uint8)))
    for bad, words in (
        (good[:-9], "is damaged"),
        (b"", "SHA-256|is damaged"),
        (b"<html>not found</html>", "is damaged"),
        (good[:12] + b"\xff" + good[13:], "is damaged|SHA-256"),
        (other, "is not the official Fashion-MNIST file: SHA-256"),
    ):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=words) as error:
            datasets.load_fashion_mnist("full", split="test")
        assert str(path) in str(error.value)
    path.unlink()
    (data / "t10k-labels-idx1-ubyte").write_bytes(gzip.decompress(good))  # unpacked: as good
    assert len(datasets.load_fashion_mnist("full", split="test").labels) == 3


def test_parse_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    parsed = fashion_mnist.parse_idx(idx(array), "f", (2, 3, 4))
    assert (parsed == array).all()
    assert parsed.flags.writeable
    assert parsed.dtype == np.uint8
    good = idx(array)
    for bad, words in (
        (b"", "begins with nothing"),
        (b"\0\0\x0d\x03" + good[4:], "no idx file of unsigned bytes"),
        (b"\0\0\x08\0", "no idx file"),
        (good[:10], "cut off in the header"),
        (good[:-1], "39 bytes, but the header"),
        (good + b"\0", "41 bytes, but the header"),
    ):
        with pytest.raises(ValueError, match=f"f: .*{words}"):
            fashion_mnist.parse_idx(bad, "f")
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\), expected \(4, 3, 2\)"):
        fashion_mnist.parse_idx(good, "f", (4, 3, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: datasets.load_fashion_mnist("tiny"),
            ValueError,
            "subset must be one of 'mini', 'full', got 'tiny'",
        ),
        (lambda: datasets.load_fashion_mnist(None), ValueError, "subset"),
        (lambda: datasets.load_fashion_mnist(split="val"), ValueError, "split must be one of .* got 'val'"),
        (lambda: datasets.load_fashion_mnist(download_if_missing="no"), TypeError, "download_if_missing"),
        (lambda: datasets.load_oliver_twist(download_if_missing=1), TypeError, "download_if_missing"),
    ],
)
def test_bad_arguments_of_loaders(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Oliver Twist


def roman(n):
    for value, numeral in ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        if n >= value:
            return numeral + roman(n - value)
    return ""


def fake_novel(style="old", n_chapters=53, words=3000):
    """A text with the novel's frame and none of its sentences, as Gutenberg's old or new edition sets it."""
    heading, newline = (
        ("CHAPTER {}\n\nOF A THING\n", "\n") if style == "old" else (" CHAPTER {}.\nOF A THING\n", "\r\n")
    )
    body = "".join(
        f"\n\n{heading.format(roman(n + 1))}\n‘It’s “here”’—he said.\n" + "so it was " * (words // 3)
        for n in range(n_chapters)
    )
    title = "OLIVER TWIST\n\nOR\n" if style == "old" else "Oliver Twist\n\nor\n"
    text = f"{title}\nContents\n\n CHAPTER I. Of a thing{body}\n"
    if style == "new":
        start, end = (f"*** {w} OF THE PROJECT GUTENBERG EBOOK OLIVER TWIST ***" for w in ("START", "END"))
        header = f"\ufeffThe Project Gutenberg eBook of Oliver Twist\n\n{start}\n\nProduced by X\n\n"
        text = f"{header}{text}\n{end}\nLicence of Project Gutenberg\n"
    return text.replace("\n", newline)


def test_roman():
    assert [oliver_twist._roman(roman(n)) for n in range(1, 60)] == list(range(1, 60))


def test_all_editions_come_to_one_form():
    old, new = (oliver_twist.canonical_text(fake_novel(style)) for style in ("old", "new"))
    for text in (old, new):
        assert text.isascii()
        assert "\r" not in text
        assert "utenberg" not in text
        assert "Produced" not in text
        assert text.upper().startswith("OLIVER TWIST\n")
        assert text.endswith("so it was\n")
        assert oliver_twist.canonical_text(text) == text
        oliver_twist._check_whole(text, "here")
    chapters = [datasets.oliver_twist_chapters(text) for text in (old, new)]
    assert chapters[0] == chapters[1]
    assert len(chapters[0]) == 53
    assert chapters[0][3][:2] == (4, "OF A THING")
    assert datasets.oliver_twist_tokens(chapters[0][0].text)[:4] == ["it's", "here", "he", "said"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 chapter headings, 53 expected.* 0 words"),
        (fake_novel(n_chapters=52), "52 chapter headings"),
        (fake_novel(words=300), "words, 150,000 to 170,000 expected"),
        (fake_novel().replace("CHAPTER IV\n", "CHAPTER VI\n"), "53 chapter headings, 53 expected.*in order"),
        (fake_novel() + "Project Gutenberg-tm", "header or trailer are left"),
    ],
)
def test_a_text_that_is_not_the_novel_is_refused(text, words, nowhere, no_network, monkeypatch, tmp_path):
    (tmp_path / "oliver_twist.txt").write_text(text, encoding="utf-8")
    monkeypatch.setenv("LOCBOOK_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"oliver_twist.txt is not the whole of Oliver Twist: .*{words}"):
        datasets.load_oliver_twist()


def test_novel_is_downloaded_once(server, nowhere, monkeypatch):
    url, folder, asked = server
    monkeypatch.setattr(oliver_twist, "URL", url + "pg730.txt")
    whole = fake_novel("new")
    for bad, words in (
        (whole[: len(whole) // 2], "mark of its end is missing"),
        (fake_novel("new", 12), "12 chapter"),
    ):
        (folder / "pg730.txt").write_bytes(bad.encode())
        with pytest.raises(ValueError, match=words):
            datasets.load_oliver_twist()
        assert not nowhere.exists()
    (folder / "pg730.txt").write_bytes(whole.encode())
    asked.clear()
    with pytest.warns(UserWarning, match="another edition"):
        text = datasets.load_oliver_twist()
    assert [p.name for p in nowhere.iterdir()] == ["oliver_twist.txt"]
    assert (nowhere / "oliver_twist.txt").read_bytes() == text.encode()
    with pytest.warns(UserWarning, match="cache.*another edition"):
        assert datasets.load_oliver_twist(download_if_missing=False) == text
    assert len(asked) == 1


@needs_oliver
def test_novel():
    text = datasets.load_oliver_twist(download_if_missing=False)  # a warning would be an error here
    assert text.isascii()
    assert text.startswith("OLIVER TWIST\n")
    assert "\r" not in text
    assert hashlib.sha256(text.encode()).hexdigest() == oliver_twist.REFERENCE_SHA256
    chapters = datasets.oliver_twist_chapters(text)
    assert [chapter.number for chapter in chapters] == list(range(1, 54))
    assert all(chapter.title and chapter.title == chapter.title.upper() for chapter in chapters)
    assert min(len(chapter.text) for chapter in chapters) > 4000


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("-- 12 * _ '", []),
        ("'Tis 'em' o' the dogs' don't I'll", ["tis", "em", "o", "the", "dogs", "don't", "i'll"]),
        ("well-known half--way _very_ A1b", ["well", "known", "half", "way", "very", "a", "b"]),
        ("Don’t “stop”—Zoë’s café…now", ["don't", "stop", "zoe's", "cafe", "now"]),
    ],
)
def test_tokens(text, tokens):
    assert datasets.oliver_twist_tokens(text) == tokens


def test_chapters_and_tokens_reject_other_types():
    for function in (datasets.oliver_twist_tokens, datasets.oliver_twist_chapters):
        with pytest.raises(TypeError, match="text must be a str, got bytes"):
            function(b"CHAPTER I")
    with pytest.raises(ValueError, match="text must hold chapter headings"):
        datasets.oliver_twist_chapters("no heading")


def test_word_pairs_against_plain_loops():
    rng = np.random.default_rng(3)
    documents = [rng.choice(list("abcdefg"), size=n).tolist() for n in (40, 3, 1, 0, 25)]
    table = datasets.count_word_pairs(documents, n_words=4, max_offset=5)
    flat = [word for document in documents for word in document]
    assert list(table.counts) == [flat.count(word) for word in table.words]
    for k in table.offsets:
        expected, total = np.zeros((4, 4), dtype=int), 0
        for document in documents:
            for t, word in enumerate(document):
                if 0 <= t + k < len(document):
                    total += 1
                    if word in table.words and document[t + k] in table.words:
                        expected[table.words.index(word), table.words.index(document[t + k])] += 1
        assert (table.pairs[5 + k] == expected).all()
        assert table.n_pairs[5 + k] == total
    assert table.n_tokens == len(flat)


def test_word_pairs_ties_and_small_input():
    table = datasets.count_word_pairs([["b", "a", "c", "c"]], n_words=9, max_offset=0)
    assert table.words == ("c", "a", "b")
    assert table.pairs.shape == (1, 3, 3)
    assert table.n_pairs.tolist() == [4]


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (("a text",), TypeError, "documents must be an iterable of sequences of words, got a str"),
        ((["a text"],), TypeError, "documents must be sequences of words"),
        (([[1, 2]],), TypeError, "documents must be sequences of words"),
        (([],), ValueError, "documents must hold at least one word"),
        (([["a"]], 0), ValueError, "n_words must be at least 1, got 0"),
        (([["a"]], 3.0), TypeError, "n_words must be an integer"),
        (([["a"]], 3, -1), ValueError, "max_offset must be at least 0, got -1"),
    ],
)
def test_word_pairs_bad_input(args, error, words):
    with pytest.raises(error, match=words):
        datasets.count_word_pairs(*args)


def test_counts_are_consistent(no_network):
    table = datasets.load_oliver_twist_counts()
    assert len(set(table.words)) == 300
    assert table.pairs.shape == (11, 300, 300)
    assert all(a.dtype == np.int64 for a in (table.counts, table.offsets, table.pairs, table.n_pairs))
    assert table.offsets.tolist() == list(range(-5, 6))
    assert (np.diff(table.counts) <= 0).all()
    assert list(table.words) == [w for _, w in sorted(zip(-table.counts, table.words, strict=True))]
    assert (table.pairs[5] == np.diag(table.counts)).all()
    assert table.n_pairs[5] == table.n_tokens
    for k in range(1, 6):
        assert (table.pairs[5 + k] == table.pairs[5 - k].T).all()
        assert table.n_pairs[5 + k] == table.n_pairs[5 - k] == table.n_tokens - 53 * k
        assert table.pairs[5 + k].sum() <= table.n_pairs[5 + k]
        assert (table.pairs[5 + k].sum(axis=1) <= table.counts).all()
        assert (table.pairs[5 + k].sum(axis=0) <= table.counts).all()
    assert table.counts.sum() < table.n_tokens
    assert oliver_twist.REFERENCE_SHA256 in table.description
    table.pairs[:] = 0
    assert datasets.load_oliver_twist_counts().pairs.any()


@needs_oliver
def test_counts_are_made_by_their_tool(tmp_path):
    assert_remade(make_oliver_counts.make(), DATA / "oliver_twist_counts.npz", tmp_path)
    text = datasets.load_oliver_twist()
    documents = [
        datasets.oliver_twist_tokens(chapter.text) for chapter in datasets.oliver_twist_chapters(text)
    ]
    stored, fresh = datasets.load_oliver_twist_counts(), datasets.count_word_pairs(documents)
    assert stored.words == fresh.words
    assert stored.n_tokens == fresh.n_tokens
    for name in ("counts", "offsets", "pairs", "n_pairs"):
        assert np.array_equal(getattr(stored, name), getattr(fresh, name)), name


def test_npz_bytes_depend_on_the_arrays_alone():
    npz_bytes = make_fashion_mini.npz_bytes
    array = np.arange(12.0).reshape(3, 4)
    assert npz_bytes({"a": array}) == npz_bytes({"a": np.asfortranarray(array)})
    assert npz_bytes({"a": array}) != npz_bytes({"b": array})


# Generators

GENERATORS = {
    "make_asymmetric": lambda rs: datasets.make_asymmetric(6, "unfolding", noise=0.1, random_state=rs),
    "make_curve": lambda rs: datasets.make_curve("doppler", 20, design="clustered", random_state=rs),
    "make_label_image": lambda rs: datasets.make_label_image((9, 8), random_state=rs),
    "make_mixture": lambda rs: datasets.make_mixture(20, random_state=rs),
    "make_ridge": lambda rs: datasets.make_ridge("spiral", 20, random_state=rs),
    "make_roll": lambda rs: datasets.make_roll(20, 0.1, random_state=rs),
    "make_seasonal": lambda rs: datasets.make_seasonal(20, random_state=rs),
    "make_triplets": lambda rs: (datasets.make_triplets(np.arange(10.0)[:, None], 20, random_state=rs),),
    "mask_pixels": lambda rs: (datasets.mask_pixels(np.zeros((5, 6, 7)), random_state=rs),),
}


def arrays(result):
    return [a for a in result if isinstance(a, np.ndarray)]


def test_every_generator_is_tested_here():
    made = {name for name in datasets.__all__ if name.startswith(("make_", "mask_"))}
    assert made == set(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_random_state(name):
    make = GENERATORS[name]
    first, second, other = arrays(make(7)), arrays(make(7)), arrays(make(8))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert all(
        np.array_equal(a, b) for a, b in zip(first, arrays(make(np.random.default_rng(7))), strict=True)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, arrays(make(np.int64(7))), strict=True))
    generator = np.random.default_rng(7)
    make(generator)
    assert any(not np.array_equal(a, b) for a, b in zip(first, arrays(make(generator)), strict=True))
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    make(None)
    assert (np.random.get_state()[1] == state).all(), "the global generator was touched"  # noqa: NPY002
    for bad, error in ((1.0, TypeError), (True, TypeError), ("1", TypeError), (-1, ValueError)):
        with pytest.raises(error, match=f"random_state must be .*got {bad!r}"):
            make(bad)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: datasets.make_curve("cosine"), ValueError, "name must be one of 'line', .* got 'cosine'"),
        (lambda: datasets.make_curve(n_samples=0), ValueError, "n_samples must be at least 1, got 0"),
        (lambda: datasets.make_curve(n_samples=10.0), TypeError, "n_samples must be an integer, got 10.0"),
        (lambda: datasets.make_curve(n_samples=True), TypeError, "n_samples"),
        (
            lambda: datasets.make_curve(noise=-1),
            ValueError,
            r"noise must be a finite number in \[0, inf\), got -1",
        ),
        (lambda: datasets.make_curve(noise=np.nan), ValueError, "noise must be .*got nan"),
        (lambda: datasets.make_curve(noise="a"), TypeError, "noise must be .*got 'a'"),
        (lambda: datasets.make_curve(noise=1j), TypeError, "noise"),
        (lambda: datasets.make_curve(noise=lambda x: -x), ValueError, r"noise\(x\) must give"),
        (lambda: datasets.make_curve(noise=lambda x: x[:3]), ValueError, r"noise\(x\) must give"),
        (lambda: datasets.make_curve(design="grid"), ValueError, "design must be one of .*got 'grid'"),
        (
            lambda: datasets.make_curve().truth([[0.0, 1.0]]),
            ValueError,
            r"points must have shape \(m,\) or \(m, 1\)",
        ),
        (lambda: datasets.make_curve().truth([np.nan]), ValueError, "points contains"),
        (lambda: datasets.make_curve().truth([]), ValueError, "points must not be empty"),
        (
            lambda: datasets.make_curve().truth([[1], [1, 2]]),
            ValueError,
            "points must be a rectangular array",
        ),
        (
            lambda: datasets.make_seasonal(period=0),
            ValueError,
            r"period must be a finite number in \(0, inf\), got 0",
        ),
        (lambda: datasets.make_seasonal(slope=np.inf), ValueError, "slope"),
        (lambda: datasets.make_seasonal(amplitude=None), TypeError, "amplitude"),
        (lambda: datasets.make_mixture(name="two"), ValueError, "name must be one of .*got 'two'"),
        (lambda: datasets.make_ridge("square"), ValueError, "name"),
        (lambda: datasets.make_ridge(noise=-0.1), ValueError, "noise"),
        (
            lambda: datasets.make_ridge().project([1.0, 2.0]),
            ValueError,
            r"points must be 2-D, got an array of shape \(2,\)",
        ),
        (lambda: datasets.make_ridge().project([[1.0]]), ValueError, "points must have 2 columns"),
        (lambda: datasets.circle_ridge_radius(-1), ValueError, "noise"),
        (lambda: datasets.make_roll(height=0), ValueError, "height"),
        (lambda: datasets.make_roll(5).embed([[-1.0, 0.0]]), ValueError, "coordinates must lie in"),
        (lambda: datasets.make_roll(5).embed([[0.0, 22.0]]), ValueError, "coordinates must lie in"),
        (lambda: datasets.make_asymmetric(1), ValueError, "n_items must be at least 2, got 1"),
        (lambda: datasets.make_asymmetric(kind="skew"), ValueError, "kind"),
        (lambda: datasets.make_triplets([[0.0], [1.0]]), ValueError, "embedding must have at least 3 rows"),
        (
            lambda: datasets.make_triplets(np.ones((3, 2), dtype=complex)),
            TypeError,
            "embedding: complex data",
        ),
        (
            lambda: datasets.make_triplets(np.full((3, 2), "a", dtype=object)),
            TypeError,
            "embedding .*dtype object",
        ),
        (
            lambda: datasets.make_triplets(np.eye(3), flip=1.5),
            ValueError,
            r"flip must be .* in \[0, 1\], got 1.5",
        ),
        (lambda: datasets.make_label_image(5), TypeError, "shape must be two ints"),
        (lambda: datasets.make_label_image((5, 0)), ValueError, r"shape\[1\] must be at least 1, got 0"),
        (lambda: datasets.make_label_image(n_labels=1), ValueError, "n_labels must be at least 2"),
        (lambda: datasets.make_label_image(flip=-0.1), ValueError, "flip"),
        (lambda: datasets.mask_pixels(np.zeros(5)), ValueError, r"images must have shape .*got \(5,\)"),
        (lambda: datasets.mask_pixels(np.zeros((0, 5, 5))), ValueError, "images"),
        (lambda: datasets.mask_pixels(np.zeros((5, 5)), 1.1), ValueError, "fraction"),
        (lambda: datasets.mask_pixels(np.zeros((5, 5)), pattern="rows"), ValueError, "pattern"),
        (
            lambda: datasets.KnownMixture([1, -1], [[0.0], [1.0]], 1),
            ValueError,
            "weights must be 2 numbers >= 0",
        ),
        (lambda: datasets.KnownMixture([1], [[0.0], [1.0]], 1), ValueError, "weights must be 2 numbers"),
        (lambda: datasets.KnownMixture([0, 0], [[0.0], [1.0]], 1), ValueError, "not all 0"),
        (lambda: datasets.KnownMixture([1], [0.0], 1), ValueError, "means must be 2-D"),
        (lambda: datasets.KnownMixture([1], [[0.0]], 0), ValueError, "covariances must be positive definite"),
        (lambda: datasets.KnownMixture([1], [[0.0]], [1.0, 1.0]), ValueError, "covariances must be a number"),
        (lambda: datasets.KnownMixture([1], [[0.0, 0]], [[[1, 0.5], [0, 1]]]), ValueError, "symmetric"),
        (
            lambda: datasets.KnownMixture([1], [[0.0]], 1).score([[0.0, 1.0]]),
            ValueError,
            "x must have 1 columns",
        ),
        (lambda: datasets.KnownMixture([1], [[0.0]], 1).noised(-1), ValueError, "sigma"),
    ],
)
def test_bad_input_names_the_parameter(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["line", "sine", "step", "doppler", "bumps", "blocks"])
@pytest.mark.parametrize("design", ["random", "uniform", "skewed", "clustered"])
def test_curves(name, design):
    x, y, truth, noise = datasets.make_curve(name, 4000, 0.3, design=design, random_state=1)
    assert x.shape == (4000, 1)
    assert y.shape == noise.shape == (4000,)
    assert (noise == 0.3).all()
    assert (np.diff(x[:, 0]) >= 0).all()
    assert x.min() >= 0
    assert x.max() <= 1
    assert np.array_equal(truth(x), truth(x[:, 0]))
    assert np.isfinite(truth(x)).all()
    residual = y - truth(x)
    assert abs(residual.mean()) < 0.02
    assert abs(residual.std() - 0.3) < 0.02
    assert np.array_equal(datasets.make_curve(name, 50, 0, design=design).truth(x), truth(x))


def test_known_values_of_curves():
    value = {
        name: datasets.make_curve(name, 1).truth
        for name in ("line", "sine", "step", "doppler", "blocks", "bumps")
    }
    assert value["line"]([0.5]) == 2
    assert value["sine"]([0.25]) == 1
    assert value["step"]([0.499, 0.5]).tolist() == [0, 1]
    np.testing.assert_allclose(value["doppler"]([0.5]), 0.5 * np.sin(2.1 * np.pi / 0.55))
    assert value["blocks"]([0.0, 0.12]).tolist() == [0, 4]
    np.testing.assert_allclose(value["blocks"]([1.0]), 0, atol=1e-12)
    assert value["bumps"]([0.65])[0] > 4.3


def test_designs_have_the_density_they_say():
    def draw(design):
        return datasets.make_curve("line", 5000, design=design, random_state=0).x[:, 0]

    assert stats.kstest(draw("random"), "uniform").pvalue > 0.01
    assert stats.kstest(draw("skewed"), lambda x: np.sqrt(x)).pvalue > 0.01
    assert np.allclose(np.diff(draw("uniform")), 1 / 4999)
    clustered = draw("clustered")
    near = (np.abs(clustered - 0.25) < 0.1) | (np.abs(clustered - 0.7) < 0.1)
    assert abs(near.mean() - (0.75 * 0.96 + 0.25 * 0.4)) < 0.03


def test_heteroscedastic_noise():
    x, y, truth, noise = datasets.make_curve("sine", 20000, lambda x: 0.1 + x, random_state=0)
    assert np.array_equal(noise, 0.1 + x[:, 0])
    standard = (y - truth(x)) / noise
    for part in np.array_split(standard, 4):
        assert abs(part.std() - 1) < 0.05


def test_seasonal():
    series = datasets.make_seasonal(3000, 7.5, amplitude=2, slope=0.01, noise=0.4, random_state=0)
    assert np.allclose(series.truth(series.time), series.trend + series.seasonal)
    assert abs((series.values - series.truth(series.time)).std() - 0.4) < 0.03
    assert np.allclose(series.seasonal[15:], series.seasonal[:-15])
    assert np.allclose(series.trend, 0.01 * series.time)


MIXTURES = ("bimodal", "claw", "three", "ellipses")


@pytest.mark.parametrize("name", MIXTURES)
def test_mixture_density_against_scipy(name):
    x, labels, truth = datasets.make_mixture(300, name, random_state=0)
    assert labels.dtype == np.int64
    assert x.shape == (300, truth.means.shape[1])
    parts = [
        w * stats.multivariate_normal(m, c).pdf(x)
        for w, m, c in zip(truth.weights, truth.means, truth.covariances, strict=True)
    ]
    np.testing.assert_allclose(truth.density(x), np.sum(parts, axis=0), rtol=1e-10)
    np.testing.assert_allclose(truth.responsibilities(x), (parts / np.sum(parts, axis=0)).T, atol=1e-12)


@pytest.mark.parametrize("name", MIXTURES)
def test_mixture_derivatives_against_differences(name):
    x, _, truth = datasets.make_mixture(40, name, random_state=1)
    step = 1e-5
    for axis in range(x.shape[1]):
        shift = step * np.eye(x.shape[1])[axis]
        slope = (truth.log_density(x + shift) - truth.log_density(x - shift)) / (2 * step)
        np.testing.assert_allclose(truth.score(x)[:, axis], slope, rtol=1e-6, atol=1e-6)
        bend = (truth.score(x + shift) - truth.score(x - shift)) / (2 * step)
        np.testing.assert_allclose(truth.hessian(x)[:, axis], bend, rtol=1e-5, atol=1e-5)


def test_mixture_far_away_is_finite():
    truth = datasets.make_mixture(1, "three").truth
    far = np.array([[1e6, -1e6]])
    assert np.isfinite(truth.log_density(far)).all()
    assert np.isfinite(truth.score(far)).all()
    np.testing.assert_allclose(truth.responsibilities(far).sum(), 1)


@pytest.mark.parametrize(("name", "n"), [("bimodal", 2), ("claw", 5), ("three", 3), ("ellipses", 3)])
def test_modes_are_maxima(name, n):
    truth = datasets.make_mixture(1, name).truth
    modes = truth.modes()
    assert modes.shape == (n, truth.means.shape[1])
    np.testing.assert_allclose(truth.score(modes), 0, atol=1e-7)
    assert (np.linalg.eigvalsh(truth.hessian(modes)) < 0).all()
    assert (np.diff(truth.density(modes)) <= 0).all()


def test_two_close_components_have_one_mode():
    """Equal weights and variance s**2: two modes exactly if the means are more than 2 s apart."""
    assert len(datasets.KnownMixture([1, 1], [[-0.9], [0.9]], 1).modes()) == 1
    assert len(datasets.KnownMixture([1, 1], [[-1.1], [1.1]], 1).modes()) == 2
    same = datasets.KnownMixture([1, 1, 0], [[1.0, 2.0]] * 3, [1, 1, 2])
    np.testing.assert_allclose(same.modes(), [[1.0, 2.0]])


def test_samples_follow_the_mixture():
    x, labels, truth = datasets.make_mixture(20000, "ellipses", random_state=2)
    np.testing.assert_allclose(np.bincount(labels) / 20000, truth.weights, atol=0.02)
    for k in range(3):
        np.testing.assert_allclose(x[labels == k].mean(axis=0), truth.means[k], atol=0.06)
        np.testing.assert_allclose(np.cov(x[labels == k].T), truth.covariances[k], atol=0.06)
    line = datasets.make_mixture(5000, "claw", random_state=0)
    grid = np.linspace(-8, 8, 4001)
    cdf = integrate.cumulative_trapezoid(line.truth.density(grid[:, None]), grid, initial=0)
    assert abs(cdf[-1] - 1) < 1e-4
    assert stats.kstest(line.x[:, 0], lambda t: np.interp(t, grid, cdf)).pvalue > 0.01


def test_noised_and_denoise():
    truth = datasets.make_mixture(1, "bimodal").truth
    sigma, alpha = 0.7, 0.8
    noised = truth.noised(sigma, alpha)
    grid = np.linspace(-8, 8, 8001)
    clean = truth.density(grid[:, None])
    for x in (-2.0, 0.1, 3.0):
        likelihood = stats.norm(alpha * grid, sigma).pdf(x)
        total = integrate.trapezoid(clean * likelihood, grid)
        np.testing.assert_allclose(noised.density([[x]]), total, rtol=1e-6)
        likelihood = stats.norm(grid, sigma).pdf(x)
        mean = integrate.trapezoid(grid * clean * likelihood, grid) / integrate.trapezoid(
            clean * likelihood, grid
        )
        np.testing.assert_allclose(truth.denoise([[x]], sigma), mean, rtol=1e-6)
    assert np.array_equal(truth.denoise([[1.0]], 0), [[1.0]])


def test_circle():
    points, clean, project = datasets.make_ridge("circle", 4000, 0.1, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(clean, axis=1), 1)
    assert abs((points - clean).std() - 0.1) < 0.005
    np.testing.assert_allclose(project(clean), clean, atol=1e-12)
    np.testing.assert_allclose(project(points), points / np.linalg.norm(points, axis=1, keepdims=True))
    assert np.array_equal(project([[0.0, 0.0]]), [[1.0, 0.0]])


def test_spiral_projection_is_the_nearest_point():
    points, clean, project = datasets.make_ridge("spiral", 200, 0.08, random_state=0)
    np.testing.assert_allclose(project(clean), clean, atol=1e-9)
    t = np.linspace(np.pi, 5 * np.pi, 200_001)
    curve = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / (5 * np.pi)
    more = np.array([[0.0, 0.0], [3.0, 0.0], [-1.5, 0.2], [0.01, -0.02], [-1.0, 0.0]])
    for p in np.concatenate([points[:40], more]):
        best = np.sqrt(((curve - p) ** 2).sum(axis=1).min())
        assert np.linalg.norm(project([p])[0] - p) <= best + 1e-9


def test_spiral_is_uniform_in_length():
    clean = datasets.make_ridge("spiral", 4000, 0, random_state=0).clean
    t = np.linalg.norm(clean, axis=1) * 5 * np.pi
    grid = np.linspace(np.pi, 5 * np.pi, 20001)
    length = integrate.cumulative_trapezoid(np.sqrt(1 + grid**2), grid, initial=0)
    assert stats.kstest(np.interp(t, grid, length) / length[-1], "uniform").pvalue > 0.01


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5, 0.69])
def test_circle_ridge_radius_is_the_crest_of_the_density(noise):
    def minus_density(r):
        angle = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
        return -np.mean(np.exp(-(r**2 + 1 - 2 * r * np.cos(angle)) / (2 * noise**2)))

    best = optimize.minimize_scalar(
        minus_density, bounds=(0, 1.2), method="bounded", options={"xatol": 1e-10}
    ).x
    np.testing.assert_allclose(datasets.circle_ridge_radius(noise), best, atol=1e-5)


def test_circle_ridge_radius_limits():
    assert datasets.circle_ridge_radius(0) == 1
    assert datasets.circle_ridge_radius(0.8) == 0
    below, above = (datasets.circle_ridge_radius(s) for s in (0.000999, 0.001001))
    assert abs(below - above) < 1e-8


def test_roll_is_isometric_and_uniform():
    points, coordinates, embed = datasets.make_roll(3000, random_state=0)
    np.testing.assert_allclose(embed(coordinates), points)
    base = coordinates * 0.98 + 0.1
    for step in ([1e-4, 0], [0, 1e-4], [1e-4, 1e-4]):
        moved = np.linalg.norm(embed(base + step) - embed(base), axis=1)
        np.testing.assert_allclose(moved, np.linalg.norm(step), rtol=1e-6)
    for axis in range(2):
        scaled = coordinates[:, axis] / coordinates[:, axis].max()
        assert stats.kstest(scaled, "uniform").pvalue > 0.01
    t = np.hypot(points[:, 0], points[:, 2])
    assert t.min() >= 1.5 * np.pi - 1e-9
    assert t.max() <= 4.5 * np.pi + 1e-9
    noisy = datasets.make_roll(3000, 0.5, random_state=0)
    assert abs((noisy.points - noisy.embed(noisy.coordinates)).std() - 0.5) < 0.02


@pytest.mark.parametrize("kind", ["slide", "unfolding"])
def test_asymmetric(kind):
    exact, rows, columns = datasets.make_asymmetric(12, kind, random_state=0)
    assert exact.shape == (12, 12)
    assert rows.shape == columns.shape == (12, 2)
    for a in range(12):
        for b in range(12):
            np.testing.assert_allclose(exact[a, b], np.hypot(*(rows[a] - columns[b])))
    assert not np.allclose(exact, exact.T)
    if kind == "slide":
        np.testing.assert_allclose(rows - columns, np.tile([0.6, 0.3], (12, 1)))
        np.testing.assert_allclose(np.diag(exact), np.hypot(0.6, 0.3))
    noisy = datasets.make_asymmetric(60, kind, noise=0.2, random_state=0)
    ratio = np.log(noisy.dissimilarity / np.linalg.norm(noisy.rows[:, None] - noisy.columns, axis=2))
    assert (noisy.dissimilarity >= 0).all()
    assert abs(ratio.std() - 0.2) < 0.02


def test_triplets():
    points = np.random.default_rng(0).normal(size=(7, 3))
    i, j, k = datasets.make_triplets(points, 20000, random_state=1).T
    assert (i != j).all()
    assert (i != k).all()
    assert (j != k).all()
    assert min(i.min(), j.min(), k.min()) == 0
    assert max(i.max(), j.max(), k.max()) == 6
    to_j, to_k = (np.linalg.norm(points[i] - points[o], axis=1) for o in (j, k))
    assert (to_j < to_k).all()
    unordered = {(a, *sorted(pair)) for a, *pair in zip(i.tolist(), j.tolist(), k.tolist(), strict=True)}
    assert len(unordered) == 7 * 15
    counts = np.unique(np.stack([i, np.minimum(j, k), np.maximum(j, k)]), axis=1, return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 0.01
    i, j, k = datasets.make_triplets(points, 20000, flip=0.2, random_state=1).T
    wrong = np.linalg.norm(points[i] - points[j], axis=1) > np.linalg.norm(points[i] - points[k], axis=1)
    assert abs(wrong.mean() - 0.2) < 0.01
    assert datasets.make_triplets(points, 5).dtype == np.int64


def test_triplets_of_integers_do_not_wrap():
    i, j, k = datasets.make_triplets(np.array([[0], [250], [255]], dtype=np.uint8), 200, random_state=0).T
    assert set(zip(i.tolist(), j.tolist(), k.tolist(), strict=True)) == {(0, 1, 2), (1, 2, 0), (2, 1, 0)}


def test_label_image():
    labels, truth = datasets.make_label_image((80, 90), 4, flip=0.3, random_state=0)
    assert labels.shape == truth.shape == (80, 90)
    assert labels.dtype == truth.dtype == np.int64
    assert set(np.unique(labels)) <= set(range(4))
    assert len(np.unique(truth)) > 1
    wrong = labels != truth
    assert abs(wrong.mean() - 0.3) < 0.03
    shift = np.bincount((labels - truth)[wrong] % 4, minlength=4)
    assert shift[0] == 0
    assert stats.chisquare(shift[1:]).pvalue > 0.01
    neighbours = (truth[:, 1:] == truth[:, :-1]).mean()
    assert neighbours > 0.9
    assert np.array_equal(*datasets.make_label_image(flip=0, random_state=0))


@pytest.mark.parametrize("fraction", [0, 0.1, 0.3, 1])
def test_masks(fraction):
    images = datasets.load_fashion_mnist(split="test").images
    mask = datasets.mask_pixels(images, fraction, random_state=0)
    assert mask.shape == images.shape
    assert mask.dtype == bool
    assert (mask.sum(axis=(1, 2)) == round(fraction * 784)).all()
    if 0 < fraction < 1:
        assert len(np.unique(mask.reshape(500, -1), axis=0)) == 500
        assert abs(mask.mean(axis=0) - fraction).max() < 0.12
    block = datasets.mask_pixels(images, fraction, pattern="block", random_state=0)
    side = round(fraction**0.5 * 28)
    assert (block.sum(axis=(1, 2)) == side**2).all()
    rows, columns = block.any(axis=2), block.any(axis=1)
    assert (rows.sum(axis=1) == side).all()
    assert (columns.sum(axis=1) == side).all()
    for line in (rows, columns):
        assert (np.diff(line.astype(int), axis=1, prepend=0, append=0) == 1).sum(axis=1).max() == (side > 0)
    one = datasets.mask_pixels(images[0], fraction, pattern="block", random_state=0)
    assert one.shape == (28, 28)
    assert one.sum() == side**2
