//! Patterns of KEYS, SCAN and CONFIG GET.

/// Whether a text matches a pattern: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` in front of a byte that
/// stands for itself. It takes time in proportion to the product of both lengths at most.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when a star has to take one byte more.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        let step = (t < text.len()).then(|| one(&pattern[p..], text[t])).flatten();
        if let Some(length) = step {
            (p, t) = (p + length, t + 1);
        } else if p == pattern.len() && t == text.len() {
            return true;
        } else {
            let Some((star, from)) = retry.filter(|&(_, from)| from < text.len()) else { return false };
            (p, t, retry) = (star, from + 1, Some((star, from + 1)));
        }
    }
}

/// Bytes of the pattern's first element if that matches a byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', rest @ ..] => {
            let (negated, mut at) = if rest.first() == Some(&b'^') { (true, 1) } else { (false, 0) };
            let mut hit = false;
            while at < rest.len() && rest[at] != b']' {
                if rest[at] == b'\\' && at + 1 < rest.len() {
                    at += 1;
                    hit |= rest[at] == byte;
                } else if at + 2 < rest.len() && rest[at + 1] == b'-' {
                    let (low, high) = (rest[at].min(rest[at + 2]), rest[at].max(rest[at + 2]));
                    hit |= (low..=high).contains(&byte);
                    at += 2;
                } else {
                    hit |= rest[at] == byte;
                }
                at += 1;
            }
            (hit != negated).then_some((at + 2).min(pattern.len()))
        }
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[^a]x", "bx"),
            ("\\*", "*"),
            ("**b*", "ab"),
            ("[c-a]", "b"),
        ] {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a*c", "abb"),
            ("?", ""),
            ("[a-c]", "d"),
            ("[^a]", "a"),
            ("\\*", "a"),
            ("[", "a"),
            ("a\\", "b"),
        ] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        // One that takes exponential time where stars are tried in all ways.
        assert!(!matches("a*".repeat(64).as_bytes(), "a".repeat(60).as_bytes()));
    }
}
