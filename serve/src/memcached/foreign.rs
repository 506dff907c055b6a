//! Other protocols: a browser or a server that is made to speak to this port must not reach a
//! command in what it sends, so that its connection ends at the first line, without an answer.

/// Verbs of other protocols. memcached's own are in lower case.
const VERBS: &[&[u8]] = &[
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"CONNECT", b"TRACE", b"PATCH", b"PRI", b"Host:",
    b"host:", b"EHLO", b"HELO", b"MAIL", b"USER", b"RSET", b"RTSP",
];

/// Whether the start of an input is of another protocol: HTTP, SMTP, FTP, Redis's, TLS.
pub fn is_foreign(input: &[u8]) -> bool {
    match input {
        // A handshake of TLS, version 3.x.
        [0x16, 0x03, ..] => return true,
        // An array of Redis's protocol.
        [b'*', b'0'..=b'9', ..] => return true,
        _ => {}
    }
    let Some(end) = input.iter().take(super::line::LINE_BYTES).position(|&byte| byte == b'\n') else { return false };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let Some(verb) = words.next() else { return false };
    let known = VERBS.contains(&verb);
    known
        || (words.next_back().is_some_and(|word| word.starts_with(b"HTTP/"))
            && verb.first().is_some_and(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use super::is_foreign;

    #[test]
    fn other_protocols() {
        for foreign in [
            &b"GET / HTTP/1.0\r\n"[..],
            b"POST / HTTP/1.1\r\n",
            b"DELETE HTTP/1.1\r\n",
            b"FETCH / HTTP/2.0\r\n",
            b"Host: here\r\n",
            b"*1\r\n$9\r\nflush_all\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"EHLO here\r\n",
        ] {
            assert!(is_foreign(foreign), "{:?}", String::from_utf8_lossy(foreign));
        }
        for own in
            [&b"get GET\r\n"[..], b"get HTTP/1.1\r\n", b"set HTTP/1.1 0 0 1\r\n", b"mg Host:\r\n", b"\r\n", b"", b"GET"]
        {
            assert!(!is_foreign(own), "{:?}", String::from_utf8_lossy(own));
        }
    }
}
