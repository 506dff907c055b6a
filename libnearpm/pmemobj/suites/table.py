"""The results as a page: counts, and a row for each test."""

from collections import Counter

from bounds import CANNOT, FAIL, PASS, SKIP
from reasons import reason_of

BEGIN, END = "<!-- begin: written by libnearpm/pmemobj/suites/run -->", "<!-- end -->"


class Row:
    """A test's results on PMDK and here, and the reason where it does not pass here."""

    def __init__(self, test, pmdk, ours):
        self.name, self.pmdk, self.ours = test.name, pmdk, ours
        self.reason = ours.reason
        if ours.status == FAIL == pmdk.status:
            self.reason = f"fails on PMDK too: {pmdk.reason}"
        elif ours.status == FAIL:
            self.reason = reason_of(test) or f"UNEXPLAINED: {ours.reason}"

    def unexplained(self):
        return self.reason.startswith("UNEXPLAINED")

    def markdown(self):
        return f"| `{self.name}` | {self.pmdk.status} | {self.ours.status} | {self.reason} |"


def summary(suites):
    lines = ["| suite | commit | tests | pass on PMDK | pass here | of those of PMDK | cannot run on another library | not run here |",
             "|---|---|--:|--:|--:|--:|--:|--:|"]
    for title, commit, rows in suites:
        pmdk, ours = (sum(getattr(r, x).status == PASS for r in rows) for x in ("pmdk", "ours"))
        both = sum(r.pmdk.status == PASS == r.ours.status for r in rows)
        rest = [sum(r.ours.status == s for r in rows) for s in (CANNOT, SKIP)]
        lines.append(f"| {title} | {commit} | {len(rows)} | {pmdk} | {ours} | {both} | {rest[0]} | {rest[1]} |")
    return lines


def kinds(rows):
    """How often each reason occurs, without names that differ from test to test."""
    counts = Counter((r.ours.status, r.reason.split(":")[0]) for r in rows if r.ours.status != PASS)
    lines = ["| here | why | tests |", "|---|---|--:|"]
    return lines + [f"| {status} | {why} | {n} |" for (status, why), n in sorted(counts.items(), key=lambda x: (x[0][0], -x[1]))]


def page(suites):
    """All tables, in Markdown."""
    lines = [*summary(suites), ""]
    for title, _, rows in suites:
        lines += [f"### {title}: why not", "", *kinds(rows), ""]
    for title, _, rows in suites:
        lines += [f"### {title}: each test", "", "| test | PMDK | here | why not |", "|---|---|---|---|"]
        lines += [row.markdown() for row in rows] + [""]
    return "\n".join(lines)


def write(path, text):
    """Writes the tables into a page: between its marks where it has them, else as the whole page."""
    before, after = "", "\n"
    if path.exists() and BEGIN in (old := path.read_text()):
        before, rest = old.split(BEGIN, 1)
        after = rest.split(END, 1)[1] if END in rest else "\n"
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
