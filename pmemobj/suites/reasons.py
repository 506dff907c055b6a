"""Why tests that pass on PMDK do not pass here: patterns of their names, and the reason, as the page shows it."""

import re

REASONS = [
]


def reason_of(name):
    """The reason that is known for a test, or nothing: such a failure is ours to explain or mend."""
    return next((reason for pattern, reason in REASONS if re.fullmatch(pattern, name)), "")
