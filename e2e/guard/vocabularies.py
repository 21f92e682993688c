"""Counts of the guard's library beside those of Hugging Face's, text by text. Usage: vocabularies.py COUNT FOLDER [FILE...]"""
import json
import pathlib
import random
import subprocess
import sys

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

COUNT, FOLDER, FILES = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
ROOT = pathlib.Path(__file__).parents[2]

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# The patterns as the models' own files have them.
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT_OSS = "|".join([
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?", rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = [
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]
HAN = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = "|".join([
    r"[\p{Han}]+", rf"[^\r\n\p{{L}}\p{{N}}]?{HAN[0]}*{HAN[1]}+{CONTRACTIONS}?", rf"[^\r\n\p{{L}}\p{{N}}]?{HAN[0]}+{HAN[1]}*{CONTRACTIONS}?",
    r"\p{N}{1,3}", REST])

WORDS = ["the", "Server", "memory", "it's", "WE'LL", "don't", "KV-cache", "2026", "3.14159", "0x7f", "naïve", "Übergröße", "e\u0301tude", "模型", "显存不足",
         "メモリ", "カーネル", "메모리", "память", "ذاكرة", "स्मृति", "หน่วยความจำ", "🦀", "👩\u200d🚀", "ﬁne", "Ⅷ", "½", "\u00a0", "\u200b", "\t", "\n", "\n\n", "  ", "    ", "\r\n",
         "!=", "->", "{}", "();", "//", "…", "—", "<s>", "[UNK]", "self.x", "fn main()", "a_b", "İstanbul", "ǅ", "ß", "\ufeff", "\u3000", "①", "𝔘𝔫𝔦", "٣٤٥", "४५"]


def texts(count=300):
    """The same every time; words of many scripts, code, spaces and marks, with and without a space between."""
    r = random.Random(21)
    return ["".join(r.choice(WORDS) + r.choice([" ", " ", " ", "", "\n"]) for _ in range(r.randrange(1, 80))) for _ in range(count)]


def corpus():
    return [p.read_text() for p in sorted((ROOT / "docs").glob("*.md"))] + texts(200)


def split(*patterns):
    parts = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return pre_tokenizers.Sequence([*parts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level(pre, normalizer=None):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def sentencepiece(normalizer, pre=None):
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    special = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    # Without a split a line is a word: a line each, or training takes minutes.
    lines = [w for c in corpus() for line in c.splitlines() for w in line.split(" ")]
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, special_tokens=special, show_progress=False))
    # A trainer adds what it is told of as special; in the models' files bytes are words like others.
    file = json.loads(t.to_str())
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(file))


def unigram():
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=3000, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False))
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=3000, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    return t


MADE = {
    "qwen2": lambda: byte_level(split(QWEN2), normalizers.NFC()),
    "llama3": lambda: byte_level(split(LLAMA3)),
    "gpt-oss": lambda: byte_level(split(GPT_OSS)),
    "deepseek-v3": lambda: byte_level(split(*DEEPSEEK)),
    "kimi-k2": lambda: byte_level(split(KIMI)),
    "gpt-2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "llama2": lambda: sentencepiece(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])),
    "gemma": lambda: sentencepiece(normalizers.Replace(" ", "▁"), pre_tokenizers.Split(" ", "merged_with_previous")),
    "unigram": unigram,
    "bert": bert,
}


def main():
    files = {pathlib.Path(f).parent.name or f: pathlib.Path(f) for f in FILES}
    for name, make in MADE.items():
        files[name] = FOLDER / f"{name}.json"
        make().save(str(files[name]))
    asked, failed = texts(), False
    lines = "".join(json.dumps(t) + "\n" for t in asked)
    for name, file in files.items():
        theirs = [len(e.ids) for e in Tokenizer.from_file(str(file)).encode_batch(asked, add_special_tokens=False)]
        ran = subprocess.run([COUNT, str(file)], input=lines, capture_output=True, text=True)
        if ran.returncode:
            print(f"FAILED {name}: {ran.stderr.strip()}")
            failed = True
            continue
        ours = [int(n) for n in ran.stdout.split()]
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        bad = same < len(asked)
        failed |= bad
        print(f"{'FAILED ' if bad else ''}{name}: {same} of {len(asked)} texts the same; {sum(ours)} tokens, theirs {sum(theirs)}")
        for text, a, b in zip(asked, ours, theirs):
            if a != b and bad:
                print(f"    {a} instead of {b}: {text[:80]!r}")
                break
    sys.exit(failed)


main()
