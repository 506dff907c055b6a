"""Output of PMDK's tests, compared as they do it, but for the words of error messages, which are no interface."""

import re

# What PMDK's patterns ($(N) and so on) stand for, as its `match` has them.
MACROS = {
    r"\$\(FP\)": r"[-+]?\d*\.?\d+([eE][-+]?\d+)?", r"\$\(N\)": r"[-+]?\d+", r"\$\(NC\)": r"[-+]?\d+(,[0-9]+)*",
    r"\$\(\*\)": r".*", r"\$\(S\)": r".+", r"\$\(X\)": r"[0-9a-fA-F]+", r"\$\(XX\)": r"0x[0-9a-fA-F]+",
    r"\$\(W\)": r"[ \t]*", r"\$\(nW\)": r"\S*",
}
# An error message of the library: behind the name of the call up to the text of errno, which
# counts, or alone.
MESSAGE = re.compile(r"^(.*?pmemobj_\w+: ).*?((?:: [A-Z][a-z]+(?: [a-z]+)*)?)$|^(error: ).*$")


def expression(pattern):
    """A line of a pattern as a regular expression."""
    message = MESSAGE.match(pattern)
    parts = [message[1] or message[3], message[2] or ""] if message else [pattern]
    texts = []
    for text in parts:
        text = re.escape(text).replace(r"\ ", " ")
        for macro, meaning in MACROS.items():
            text = text.replace(re.escape(macro.replace("\\", "")).replace(r"\ ", " "), meaning)
        texts.append(text)
    return ".*".join(texts) if message else texts[0]


def same_but_for_words(log, pattern):
    """Whether a log fits its pattern, whatever words its error messages have. Patterns with optional lines do not."""
    wanted, found = pattern.splitlines(), log.splitlines()
    if "$(OP" in pattern or len(wanted) != len(found):
        return False
    return all(re.fullmatch(expression(want), line) for want, line in zip(wanted, found))
